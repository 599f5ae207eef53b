// LaunchWidth: how many threads execute the small launches of one kernel, learned from how long such launches take.
//
// threads_that_pay (launch.h) takes a thread for each 5 us of work. That is too many where work takes longer on more threads, as when each
// thread loads bytes from the caches of others: then the time rises with the number of processors. So now and then one launch has half of
// the threads, or twice as many after the number was reduced. The number changes when three such trials in succession were faster (half)
// or much faster (twice). A trial that was slower makes the next ones rarer, down to one of 1,024 launches. Only launches that take less than
// `small_ns` are tried: for others, the time to wake threads does not matter, and a slow trial would cost much.
//
// What was learned holds for launches with about the same number of work-groups; others begin anew. Any thread: the members are
// independent, and threads that launch the same kernel at the same time at worst make a bad choice for a few launches.
#pragma once

#include <atomic>
#include <cstdint>

namespace polder::devices {

class LaunchWidth {
public:
    // Launches that are expected to take longer keep the number of threads that they are given.
    static constexpr float small_ns = 100'000;

    struct Choice {
        uint32_t threads = 1;
        enum class Trial : uint8_t { no, half, twice } trial = Trial::no;
        bool is_observed = false;  // call `observe` after the launch
    };
    // `most`: the number of threads that threads_that_pay returned; `work_ns`: the expected time of the launch on one thread.
    [[nodiscard]] Choice choose(uint32_t most, uint64_t group_count, float work_ns);
    // `elapsed_ns`: from the beginning to the end of the launch.
    void observe(const Choice& choice, float elapsed_ns);

private:
    static constexpr uint32_t first_interval = 16, longest_interval = 1024;
    static constexpr uint32_t trials_to_change = 3;

    void forget(uint32_t size_class);
    static uint32_t load(const std::atomic<uint32_t>& value) { return value.load(std::memory_order_relaxed); }
    static void store(std::atomic<uint32_t>& value, uint32_t to) { value.store(to, std::memory_order_relaxed); }

    std::atomic<uint32_t> size_class_{0};  // the number of bits of the number of work-groups
    std::atomic<uint32_t> limit_{0};  // threads; 0: no limit was found
    std::atomic<uint32_t> launches_{0};  // with about this number of work-groups
    std::atomic<uint32_t> interval_{first_interval};
    std::atomic<uint32_t> successes_{0};  // trials in succession that were faster
    std::atomic<bool> next_is_twice_{false};
    std::atomic<float> usual_ns_{0};  // moving average of launches that are no trials
};

}  // namespace polder::devices
