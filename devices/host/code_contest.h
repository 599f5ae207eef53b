// CodeContest: which of several forms of one kernel's code is fastest, found by measuring launches (decision 325).
//
// The compiler chooses between lanes and loops, and how many vectors of lanes run at once, by estimates, which are wrong for some kernels. When
// a kernel has worked for long enough that another compilation hardly matters, the code of another form is requested, which another thread makes. Then
// launches execute some of their work-groups in one form and some in the other, in turns, until it is clear which one is faster. A form that has won is compared
// again in runs of whole launches, because caches, threads and predicted branches may make of them what pieces do not show (decision 332). The faster one stays, and the next
// form is its rival. All forms compute the same. They are measured again when the kernel has worked for some seconds more, or many times as long as until then,
// because its later launches may be others (decision 342).
//
// Any thread may call any function, except `offer`, which comes before the first launch.
#pragma once

#include <base/mutex.h>

#include <array>
#include <atomic>
#include <host/paired_times.h>
#include <memory>
#include <optional>
#include <polder/driver.h>

namespace polder::devices {

class CodeContest {
public:
    using First = PairedTimes::First;

    explicit CodeContest(const driver::HostCode& planned) : planned_(planned), best_(&planned) {}

    void offer(std::unique_ptr<driver::OtherForms> forms);

    // What a launch executes.
    struct Turn {
        const driver::HostCode* code = nullptr;
        const driver::HostCode* rival = nullptr;  // null: the launch executes `code` alone
    };
    // `stack_bytes`: what the executing thread has.
    [[nodiscard]] Turn turn(uint64_t stack_bytes) const {
        const driver::HostCode* const best = best_.load(std::memory_order_acquire);
        const driver::HostCode* const rival = rival_.load(std::memory_order_acquire);
        if (best->stack_bytes > stack_bytes) [[unlikely]]
            return {&planned_};
        const bool has_rival = rival != nullptr && rival != best && rival->stack_bytes <= stack_bytes;
        return {best, has_rival ? rival : nullptr};
    }
    // The most stack that a launch may need.
    [[nodiscard]] uint64_t stack_bytes() const { return stack_bytes_.load(std::memory_order_relaxed); }

    // Whether the time of launches is to be reported by `worked`: there are other forms.
    [[nodiscard]] bool wants_times() const { return forms_ != nullptr; }
    // Threads have executed work-groups for so long, in sum.
    void worked(uint64_t ns);

    // Whether whole launches are compared, also those that are large enough for both forms.
    [[nodiscard]] bool wants_whole() const { return wants_whole_.load(std::memory_order_relaxed); }
    // Which code runs first in the next pair of times, for threads that measure both.
    [[nodiscard]] First first();
    void add(const Turn& turn, First first, uint64_t code_ns, uint64_t rival_ns);
    // For a launch that executes one form: the code for all of it, and its time. Launches of about as many work-groups execute both forms in turns.
    [[nodiscard]] const driver::HostCode& whole(const Turn& turn, uint64_t group_count);
    void add_whole(const Turn& turn, const driver::HostCode& executed, uint64_t group_count, uint64_t ns);

private:
    enum class Stage : uint8_t {
        idle,
        requested,
        measuring,
        confirming
    };  // idle: until `next_ns_`, when all forms are measured (again)
    // Launches of about one size: runs of one code and the other in turns, whose last launches are a pair.
    struct Series {
        uint64_t group_count = 0;  // 0: none
        const driver::HostCode* code = nullptr;  // of this run
        size_t launches = 0;  // of this run, complete
        const driver::HostCode* before =
            nullptr;  // the code of the run before this one; null: this is the first one of a pair
        double before_ns = 0;  // for each work-group
    };
    static constexpr size_t sizes_max = 8;  // of launches that alternate
    using AllSeries = std::array<Series, sizes_max>;
    // What a trial has found, which is reported without the lock because that may write a file.
    struct Finding {
        size_t number = 0;  // of the trial
        size_t form = 0;
        float ratio = 1;
        driver::OtherForms::Verdict verdict = driver::OtherForms::Verdict::not_faster;
    };
    using Verdict = driver::OtherForms::Verdict;

    void report(const std::optional<Finding>& found) POLDER_EXCLUDES(mutex_, report_mutex_);
    [[nodiscard]] std::optional<Finding> take_finding() POLDER_REQUIRES(mutex_);
    void add_pair(const Turn& turn, First first, uint64_t code_ns, uint64_t rival_ns) POLDER_REQUIRES(mutex_);
    void add_launch(const Turn& turn, const driver::HostCode& executed, uint64_t group_count, uint64_t ns)
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] AllSeries::iterator series_of(uint64_t group_count) POLDER_REQUIRES(mutex_);
    void advance() POLDER_REQUIRES(mutex_);
    void begin_form() POLDER_REQUIRES(mutex_);
    void poll() POLDER_REQUIRES(mutex_);
    void measure(const driver::HostCode& rival) POLDER_REQUIRES(mutex_);
    void judge() POLDER_REQUIRES(mutex_);
    void judge_whole() POLDER_REQUIRES(mutex_);
    void judge_after_long() POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool is_clear_win() const POLDER_REQUIRES(mutex_);
    void confirm() POLDER_REQUIRES(mutex_);
    void end_form(Verdict verdict) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool is_suitable(const driver::HostCode& code) const;

    const driver::HostCode& planned_;
    std::unique_ptr<driver::OtherForms> forms_;  // null: none were offered
    std::atomic<const driver::HostCode*> best_, rival_{nullptr};
    std::atomic<bool> wants_whole_{false};
    std::atomic<uint64_t> stack_bytes_{planned_.stack_bytes};
    std::atomic<uint64_t> worked_ns_{0}, next_ns_{0};  // at `next_ns_`, the next step is taken
    Mutex mutex_;
    Stage stage_ POLDER_GUARDED_BY(mutex_) = Stage::idle;
    size_t form_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t trial_began_ns_ POLDER_GUARDED_BY(mutex_) = 0;  // of worked_ns_
    uint64_t trials_ns_ POLDER_GUARDED_BY(mutex_) = 0;  // of this round's trials
    std::optional<Finding> found_ POLDER_GUARDED_BY(mutex_);
    size_t trials_ POLDER_GUARDED_BY(mutex_) = 0;
    Mutex report_mutex_;
    size_t reported_ POLDER_GUARDED_BY(report_mutex_) = 0;  // the trial of the latest one
    PairedTimes times_ POLDER_GUARDED_BY(mutex_);
    unsigned warming_ POLDER_GUARDED_BY(mutex_) = 0;  // pairs that are not counted
    float ratio_ POLDER_GUARDED_BY(mutex_) = 1;  // until whole launches confirm it
    AllSeries series_ POLDER_GUARDED_BY(mutex_);  // the latest first
    size_t alone_ POLDER_GUARDED_BY(mutex_) = 0;  // launches that began a series, since the last pair
};

}  // namespace polder::devices
