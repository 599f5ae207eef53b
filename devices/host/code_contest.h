// CodeContest: which of several forms of one kernel's code is fastest, found by measuring launches (decision 325).
//
// The compiler chooses between lanes and loops, and how many vectors of lanes run at once, by estimates, which are wrong for some kernels. When
// a kernel has worked for long enough that another compilation hardly matters, the code of another form is requested, which another thread makes. Then
// launches execute some of their work-groups in one form and some in the other, in turns, until it is clear which one is faster. A form that has won is compared
// again in whole launches, because caches and threads may make of them what pieces do not show (decision 332). The faster one stays, and the next
// form is its rival. All forms compute the same. When the kernel has worked many times as long as until then, they are measured again, because
// its later launches may be others.
//
// Any thread may call any function, except `offer`, which comes before the first launch.
#pragma once

#include <base/mutex.h>

#include <array>
#include <atomic>
#include <host/paired_times.h>
#include <memory>
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
    // `stack_bytes`: what the launch was submitted with.
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
    // For a launch that is too small for both: the code for all of it, and its time. The next launch of as many work-groups executes the other one.
    [[nodiscard]] const driver::HostCode& whole(const Turn& turn, uint64_t group_count);
    void add_whole(const Turn& turn, const driver::HostCode& executed, uint64_t group_count, uint64_t ns);

private:
    enum class Stage : uint8_t {
        idle,
        requested,
        measuring,
        confirming
    };  // idle: until `next_ns_`, when all forms are measured (again)
    struct Whole {
        const driver::HostCode* code = nullptr;
        uint64_t group_count = 0;
        uint64_t ns = 0;
    };
    static constexpr size_t sizes_max = 4;  // of launches that alternate
    using Wholes = std::array<Whole, sizes_max>;

    void add_pair(const Turn& turn, First first, uint64_t code_ns, uint64_t rival_ns) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Wholes::iterator whole_of(uint64_t group_count) POLDER_REQUIRES(mutex_);
    void advance() POLDER_REQUIRES(mutex_);
    void begin_form() POLDER_REQUIRES(mutex_);
    void poll() POLDER_REQUIRES(mutex_);
    void measure(const driver::HostCode& rival) POLDER_REQUIRES(mutex_);
    void judge() POLDER_REQUIRES(mutex_);
    void judge_whole() POLDER_REQUIRES(mutex_);
    void confirm() POLDER_REQUIRES(mutex_);
    enum class Verdict : uint8_t { faster, not_faster };
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
    PairedTimes times_ POLDER_GUARDED_BY(mutex_);
    unsigned warming_ POLDER_GUARDED_BY(mutex_) = 0;  // pairs that are not counted
    bool has_pieces_ POLDER_GUARDED_BY(mutex_) = false;  // pairs of this trial are pieces of launches
    float ratio_ POLDER_GUARDED_BY(mutex_) = 1;  // of pieces, while whole launches are compared
    Wholes wholes_ POLDER_GUARDED_BY(mutex_);  // launches without a partner yet, the latest first
};

}  // namespace polder::devices
