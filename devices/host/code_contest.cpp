// A contest is a chain of steps. `worked` takes the next one when launches have worked for long enough: a form is requested, was made, is measured. `add` and
// `add_whole` collect pairs of times until `judge` ends the trial. All steps are under the mutex; launches only read the two codes.
#include <base/log.h>

#include <algorithm>
#include <host/code_contest.h>
#include <host/worker_pool.h>

namespace polder::devices {
namespace {

// The first pairs of a form load its code into caches and are not counted.
constexpr unsigned warming_pairs = 2;
constexpr size_t pairs_to_give_up = 8, pairs_to_decide = 24;
constexpr float sum_to_decide_ns = 1'000'000;
// Work-groups may take long, so a form that takes many times as long in both of two pairs loses.
constexpr size_t pairs_of_long_groups = 2;
// Another form must take this part of the time. A difference that is smaller changes from run to run.
constexpr float clear_win = 0.95f, close_win = 0.97f, clear_loss = 1.0f, hopeless = 1.25f, very_slow = 2.5f;
// A kernel that has not worked for so long in sum may end before a form gains what making it takes.
constexpr uint64_t least_work_ns = 20'000'000;
// While a form is made, launches look for it after so much work. A trial ends after so much work, whether or not it was clear.
constexpr uint64_t poll_ns = 1'000'000, trial_ns = 1'000'000'000;
// All forms are measured again when the kernel has worked so many times as long.
constexpr uint64_t again = 16;

}  // namespace

void CodeContest::offer(std::unique_ptr<driver::OtherForms> forms) {
    forms_ = std::move(forms);
    next_ns_.store(std::max(least_work_ns, forms_->making_ns()), std::memory_order_relaxed);
}

void CodeContest::worked(uint64_t ns) {
    const uint64_t sum = worked_ns_.load(std::memory_order_relaxed) + ns;
    worked_ns_.store(sum, std::memory_order_relaxed);
    if (sum < next_ns_.load(std::memory_order_relaxed)) [[likely]]
        return;
    const Lock lock(mutex_);
    if (sum >= next_ns_.load(std::memory_order_relaxed))
        advance();
}

void CodeContest::advance() {
    switch (stage_) {
    case Stage::idle:
        form_ = 0;
        begin_form();
        break;
    case Stage::requested: poll(); break;
    case Stage::measuring: end_form(); break;
    }
}

void CodeContest::begin_form() {
    const uint64_t sum = worked_ns_.load(std::memory_order_relaxed);
    if (form_ == forms_->count()) {
        stage_ = Stage::idle;
        if (best_form_)
            forms_->settled(*best_form_);
        next_ns_.store(again * sum, std::memory_order_relaxed);
        return;
    }
    forms_->request(form_);
    stage_ = Stage::requested;
    next_ns_.store(sum + poll_ns, std::memory_order_relaxed);
}

void CodeContest::poll() {
    const std::optional<const driver::HostCode*> made = forms_->made(form_);
    if (!made) {
        next_ns_.store(worked_ns_.load(std::memory_order_relaxed) + poll_ns, std::memory_order_relaxed);
        return;
    }
    const driver::HostCode* code = *made;
    // A form that was the fastest is measured again, beside the planned code.
    if (code != nullptr && code == best_.load(std::memory_order_relaxed))
        code = &planned_;
    if (code != nullptr && is_suitable(*code)) {
        measure(*code);
    } else {
        ++form_;
        begin_form();
    }
}

bool CodeContest::is_suitable(const driver::HostCode& code) const {
    return code.local_bytes == planned_.local_bytes && code.stack_bytes <= WorkerPool::kernel_stack_bytes &&
           code.function != best_.load(std::memory_order_relaxed)->function;
}

void CodeContest::measure(const driver::HostCode& rival) {
    times_ = {};
    last_whole_ = {};
    warming_ = warming_pairs;
    stage_ = Stage::measuring;
    next_ns_.store(worked_ns_.load(std::memory_order_relaxed) + trial_ns, std::memory_order_relaxed);
    if (rival.stack_bytes > stack_bytes_.load(std::memory_order_relaxed))
        stack_bytes_.store(rival.stack_bytes, std::memory_order_relaxed);
    rival_.store(&rival, std::memory_order_release);
    if (form_ + 1 < forms_->count())
        forms_->request(form_ + 1);  // is probably there when this one was measured
}

CodeContest::First CodeContest::first() {
    const Lock lock(mutex_);
    return times_.next();
}

void CodeContest::add(const Turn& turn, First first, uint64_t code_ns, uint64_t rival_ns) {
    const Lock lock(mutex_);
    if (turn.rival != rival_.load(std::memory_order_relaxed))
        return;  // another thread has ended this trial
    if (warming_ > 0) {
        --warming_;
        return;
    }
    times_.add(first, static_cast<float>(code_ns), static_cast<float>(rival_ns));
    judge();
}

const driver::HostCode& CodeContest::whole(const Turn& turn, uint64_t group_count) {
    const Lock lock(mutex_);
    if (last_whole_.code != nullptr && last_whole_.group_count == group_count)
        return last_whole_.code == turn.code ? *turn.rival : *turn.code;
    return times_.next() == First::current ? *turn.code : *turn.rival;
}

void CodeContest::add_whole(const Turn& turn, const driver::HostCode& executed, uint64_t group_count, uint64_t ns) {
    Whole before;
    {
        const Lock lock(mutex_);
        const bool is_pair =
            last_whole_.code != nullptr && last_whole_.code != &executed && last_whole_.group_count == group_count;
        before = is_pair ? last_whole_ : Whole{};
        last_whole_ = is_pair ? Whole{} : Whole{&executed, group_count, ns};
    }
    if (before.code == turn.code)
        add(turn, First::current, before.ns, ns);
    else if (before.code == turn.rival)
        add(turn, First::rival, ns, before.ns);
}

void CodeContest::judge() {
    const size_t pairs = times_.pairs();
    const float ratio = times_.ratio();
    const bool is_lost =
        (pairs >= pairs_to_give_up && ratio > hopeless) ||
        (pairs >= pairs_of_long_groups && times_.least_ratio() > very_slow && times_.sum_ns() >= sum_to_decide_ns);
    const bool is_measured = pairs >= pairs_to_decide && (times_.sum_ns() >= sum_to_decide_ns || times_.is_full());
    const bool is_clear = ratio <= clear_win || ratio >= clear_loss || times_.is_full();
    if (is_lost || (is_measured && is_clear))
        end_form();
}

void CodeContest::end_form() {
    const driver::HostCode* const rival = rival_.load(std::memory_order_relaxed);
    const float ratio = times_.ratio();
    POLDER_LOG(compiler, "kernel %s: %s takes %.2f of the time, by %zu pairs of measurements", planned_.name.c_str(),
               forms_->name(form_), static_cast<double>(ratio), times_.pairs());
    if (times_.pairs() >= pairs_to_decide && ratio <= close_win) {
        best_.store(rival, std::memory_order_release);
        best_form_ = rival == &planned_ ? std::nullopt : std::optional{form_};
    }
    rival_.store(nullptr, std::memory_order_release);
    if (rival != &planned_)
        forms_->measured(form_, ratio);
    ++form_;
    begin_form();
}

}  // namespace polder::devices
