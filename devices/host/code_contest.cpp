// A contest is a chain of steps. `worked` takes the next one when launches have worked for long enough: a form is requested, was made, is measured. `add` and
// `add_whole` collect pairs of times until `judge` ends the trial. All steps are under the mutex, but for the report of what was found; launches only read the two codes.
#include <base/log.h>

#include <algorithm>
#include <host/code_contest.h>
#include <host/worker_pool.h>
#include <utility>

namespace polder::devices {
namespace {

// The first pairs of a form load its code into caches and are not counted.
constexpr unsigned warming_pairs = 2;
constexpr size_t pairs_to_give_up = 8, pairs_to_decide = 24, pairs_between_looks = 8;
constexpr float sum_to_decide_ns = 1'000'000;
// Work-groups may take long, so a form that takes many times as long in both of two pairs loses.
constexpr size_t pairs_of_long_groups = 2;
// Another form must take this part of the time. A difference that is smaller changes from run to run. So it also has to be more than so many
// standard errors: one of 24 pairs is 5% of the time on a busy machine, and every look at the times is another chance to err.
constexpr float clear_win = 0.95f, close_win = 0.97f, hopeless = 1.25f, very_slow = 2.5f;
constexpr float errors_of_win = 2.5f, errors_of_loss = 1.5f;
// Whole launches that confirm it: a form loses when it is slower in this many pairs, and is faster when it is so in these many on average.
constexpr size_t whole_pairs_to_decide = 8, whole_pairs_max = 48;
// The last launch of a run of one form counts, when the branches of the other form are forgotten. A long launch forgets them itself.
constexpr uint64_t short_launch_ns = 300'000, long_launch_ns = 2'000'000;
size_t launches_of_run(uint64_t ns) {
    if (ns < short_launch_ns)
        return 3;
    return ns < long_launch_ns ? 2 : 1;
}
// A kernel that has not worked for so long in sum may end before a form gains what making it takes.
constexpr uint64_t least_work_ns = 20'000'000;
// Loading a form that an earlier process has made takes little. What that process found is checked early.
constexpr uint64_t least_work_of_made_ns = 4'000'000;
// While a form is made, launches look for it after so much work. A trial ends after so much work, whether or not it was clear: later where work-groups take so long
// that there are only a few pairs.
constexpr uint64_t poll_ns = 1'000'000, trial_ns = 1'000'000'000;
constexpr uint64_t trials_of_long_groups = 8;
// All forms are measured again when the kernel has worked so many times as long, and at the latest after so much work: data may be other data by then, and the best
// form slower than another. The trials take a small part of the work.
constexpr uint64_t again = 16, again_ns = 2'000'000'000, work_of_trials = 32;
// Launches whose numbers of work-groups differ by less than this part are compared.
constexpr uint64_t part_of_size = 8;

}  // namespace

void CodeContest::offer(std::unique_ptr<driver::OtherForms> forms) {
    forms_ = std::move(forms);
    const uint64_t making_ns = forms_->making_ns();
    next_ns_.store(making_ns == 0 ? least_work_of_made_ns : std::max(least_work_ns, making_ns),
                   std::memory_order_relaxed);
}

void CodeContest::worked(uint64_t ns) {
    const uint64_t sum = worked_ns_.load(std::memory_order_relaxed) + ns;
    worked_ns_.store(sum, std::memory_order_relaxed);
    if (sum < next_ns_.load(std::memory_order_relaxed)) [[likely]]
        return;
    std::optional<Finding> found;
    {
        const Lock lock(mutex_);
        if (sum >= next_ns_.load(std::memory_order_relaxed))
            advance();
        found = take_finding();
    }
    report(found);
}

std::optional<CodeContest::Finding> CodeContest::take_finding() { return std::exchange(found_, std::nullopt); }

void CodeContest::report(const std::optional<Finding>& found) {
    if (!found)
        return;
    const Lock lock(report_mutex_);
    // Another thread may have reported the next trial already, whose winner is faster than this one.
    const bool is_latest = found->number > reported_;
    reported_ = std::max(reported_, found->number);
    forms_->measured(found->form, found->ratio, is_latest ? found->verdict : Verdict::not_faster);
}

void CodeContest::advance() {
    switch (stage_) {
    case Stage::idle:
        form_ = 0;
        trials_ns_ = 0;
        begin_form();
        break;
    case Stage::requested: poll(); break;
    case Stage::measuring: judge_after_long(); break;
    // Launches are so long that few could be compared: pieces of them are right.
    case Stage::confirming: end_form(times_.ratio() <= 1 ? Verdict::faster : Verdict::not_faster); break;
    }
}

void CodeContest::begin_form() {
    const uint64_t sum = worked_ns_.load(std::memory_order_relaxed);
    if (form_ == forms_->count()) {
        stage_ = Stage::idle;
        next_ns_.store(sum + std::min((again - 1) * sum, std::max(again_ns, work_of_trials * trials_ns_)),
                       std::memory_order_relaxed);
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
    series_ = {};
    alone_ = 0;
    warming_ = warming_pairs;
    stage_ = Stage::measuring;
    trial_began_ns_ = worked_ns_.load(std::memory_order_relaxed);
    next_ns_.store(trial_began_ns_ + trial_ns, std::memory_order_relaxed);
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
    std::optional<Finding> found;
    {
        const Lock lock(mutex_);
        if (stage_ == Stage::confirming)
            return;  // a launch that began before
        add_pair(turn, first, code_ns, rival_ns);
        found = take_finding();
    }
    report(found);
}

void CodeContest::add_pair(const Turn& turn, First first, uint64_t code_ns, uint64_t rival_ns) {
    if (turn.rival != rival_.load(std::memory_order_relaxed))
        return;  // another thread has ended this trial
    if (warming_ > 0) {
        --warming_;
        return;
    }
    times_.add(first, static_cast<float>(code_ns), static_cast<float>(rival_ns));
    if (stage_ == Stage::confirming)
        judge_whole();
    else
        judge();
}

// That of about so many work-groups, or the end.
CodeContest::AllSeries::iterator CodeContest::series_of(uint64_t group_count) {
    return std::ranges::find_if(series_, [&](const Series& series) {
        const auto [less, more] = std::minmax(series.group_count, group_count);
        return series.group_count != 0 && more - less <= less / part_of_size;
    });
}

const driver::HostCode& CodeContest::whole(const Turn& turn, uint64_t group_count) {
    const Lock lock(mutex_);
    if (const auto series = series_of(group_count);
        series != series_.end() && (series->code == turn.code || series->code == turn.rival))
        return *series->code;
    // Where all launches have other sizes, they must not all execute the same form.
    const First next = ++alone_ > sizes_max ? PairedTimes::random(alone_) : times_.next();
    return next == First::current ? *turn.code : *turn.rival;
}

void CodeContest::add_whole(const Turn& turn, const driver::HostCode& executed, uint64_t group_count, uint64_t ns) {
    std::optional<Finding> found;
    {
        const Lock lock(mutex_);
        add_launch(turn, executed, group_count, ns);
        found = take_finding();
    }
    report(found);
}

void CodeContest::add_launch(const Turn& turn, const driver::HostCode& executed, uint64_t group_count, uint64_t ns) {
    if (turn.rival != rival_.load(std::memory_order_relaxed))
        return;  // another thread has ended this trial
    const auto found = series_of(group_count);
    const auto place = found == series_.end() ? std::prev(found) : found;
    if (found == series_.end())
        *place = {group_count, &executed};
    std::rotate(series_.begin(), place, std::next(place));
    Series& series = series_.front();
    if (series.code != &executed)
        return;  // began before this run
    if (++series.launches < (stage_ == Stage::confirming ? launches_of_run(ns) : 1))
        return;
    series.launches = 0;
    const double group_ns = static_cast<double>(ns) / static_cast<double>(group_count);
    if (series.before == nullptr) {
        series.before = &executed;
        series.before_ns = group_ns;
        series.code = &executed == turn.code ? turn.rival : turn.code;
        return;
    }
    const auto before_ns = static_cast<uint64_t>(series.before_ns * static_cast<double>(group_count));
    series.before = nullptr;
    alone_ = 0;
    if (&executed == turn.rival)
        add_pair(turn, First::current, before_ns, ns);
    else
        add_pair(turn, First::rival, ns, before_ns);
    // The trial may have ended, or its launches are compared in runs now.
    if (series_.front().group_count != 0)
        series_.front().code = times_.next() == First::current ? turn.code : turn.rival;
}

void CodeContest::judge() {
    const size_t pairs = times_.pairs();
    const bool is_lost =
        (pairs >= pairs_to_give_up && times_.lower_ratio() > hopeless) ||
        (pairs >= pairs_of_long_groups && times_.least_ratio() > very_slow && times_.sum_ns() >= sum_to_decide_ns);
    if (is_lost)
        return end_form(Verdict::not_faster);
    if (pairs < pairs_to_decide || pairs % pairs_between_looks != 0 ||
        (times_.sum_ns() < sum_to_decide_ns && !times_.is_full()))
        return;
    const bool is_won = is_clear_win();
    if (is_won)
        confirm();
    else if (times_.is_full() || times_.bounds(errors_of_loss).low > clear_win)
        end_form(Verdict::not_faster);
}

bool CodeContest::is_clear_win() const {
    return times_.ratio() <= (times_.is_full() ? close_win : clear_win) && times_.bounds(errors_of_win).high <= 1;
}

// Long work-groups take about the same time each, so a few pairs may be clear.
void CodeContest::judge_after_long() {
    const uint64_t sum = worked_ns_.load(std::memory_order_relaxed);
    if (times_.pairs() < pairs_to_give_up && sum - trial_began_ns_ < trials_of_long_groups * trial_ns)
        next_ns_.store(sum + trial_ns, std::memory_order_relaxed);
    else
        end_form(is_clear_win() ? Verdict::faster : Verdict::not_faster);
}

void CodeContest::confirm() {
    ratio_ = times_.ratio();
    times_ = {};
    series_ = {};
    stage_ = Stage::confirming;
    wants_whole_.store(true, std::memory_order_relaxed);
    next_ns_.store(worked_ns_.load(std::memory_order_relaxed) + trial_ns, std::memory_order_relaxed);
}

void CodeContest::judge_whole() {
    const size_t pairs = times_.pairs();
    if (pairs < whole_pairs_to_decide || pairs % pairs_between_looks != 0)
        return;
    const PairedTimes::Bounds bounds = times_.bounds(errors_of_loss);
    if (bounds.low > 1 || (pairs >= whole_pairs_max && bounds.ratio > close_win))
        end_form(Verdict::not_faster);
    else if (bounds.high <= 1 || pairs >= whole_pairs_max)
        end_form(Verdict::faster);
}

void CodeContest::end_form(Verdict verdict) {
    const driver::HostCode* const rival = rival_.load(std::memory_order_relaxed);
    const bool is_confirmed = stage_ == Stage::confirming;
    const float ratio = times_.pairs() == 0 && is_confirmed ? ratio_ : times_.ratio();
    POLDER_LOG(compiler, "kernel %s: %s takes %.2f of the time, by %zu pairs of %s", planned_.name.c_str(),
               forms_->name(form_), static_cast<double>(ratio), times_.pairs(),
               is_confirmed ? "launches, after pairs of measurements" : "measurements");
    if (verdict == Verdict::faster)
        best_.store(rival, std::memory_order_release);
    rival_.store(nullptr, std::memory_order_release);
    wants_whole_.store(false, std::memory_order_relaxed);
    ++trials_;
    trials_ns_ += worked_ns_.load(std::memory_order_relaxed) - trial_began_ns_;
    // The process may end before all forms were measured. A trial without pairs says nothing.
    if ((rival != &planned_ || verdict == Verdict::faster) && (times_.pairs() != 0 || is_confirmed))
        found_ = {trials_, rival == &planned_ ? forms_->count() : form_, ratio, verdict};
    ++form_;
    begin_form();
}

}  // namespace polder::devices
