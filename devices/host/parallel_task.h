// ParallelTask: a range of units of work (work-groups, blocks of bytes) that several threads take chunks of.
//
// The range is cut into parts, one for each thread, or for a few neighbouring threads where there are many. A thread begins in the part of the processor
// that it runs on. So the same processor executes about the same units in each of several tasks of one size, and finds their bytes in its own caches
// (decision 332). A thread whose part is used up takes chunks of the next parts, each from its end: units that are executed at the same time are then no
// neighbours, which often write the same cache lines (decision 353). A chunk is a fixed fraction of what is left of its part (guided
// scheduling): the first chunks are large, and the last ones are small, so that all threads end at about the same time.
// Lives on the stack of the thread that runs it (WorkerPool::run), which outlasts every participant.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <host/parker.h>
#include <host/workspace.h>

namespace polder::devices {

class PooledQueue;

struct UnitRange {
    uint64_t begin = 0;
    uint64_t end = 0;
    [[nodiscard]] bool empty() const { return begin >= end; }
};

class ParallelTask {
public:
    // Executes some units. Called by several threads at once, each with its own workspace.
    using Run = void (*)(void* context, UnitRange units, Workspace& workspace);
    // Prepares a workspace for `Run`. A thread whose workspace cannot be prepared does not take part.
    using Prepare = Workspace::Growth (*)(void* context, Workspace& workspace);

    struct Shape {
        UnitRange units;
        uint64_t chunk_min = 1;
        uint32_t threads_max = 1;
        PooledQueue* queue =
            nullptr;  // threads of the application that wait for it may take part; null: only workers do
        uint64_t stack_bytes = 0;  // what a thread of the application must have left
    };

    ParallelTask(const Shape& shape, void* context, Run run, Prepare prepare = nullptr);
    ParallelTask(const ParallelTask&) = delete;
    ParallelTask& operator=(const ParallelTask&) = delete;

    // A processor's place among those of the pool.
    struct Place {
        uint32_t rank = 0;
        uint32_t width = 1;  // the number of the pool's processors
    };
    // Takes and executes chunks until none is left or `leave_early` becomes non-zero. False: it has executed none.
    bool work(Workspace& workspace, Place place, const std::atomic<uint32_t>* leave_early);
    [[nodiscard]] bool has_work() const { return left_.load(std::memory_order_relaxed) != 0; }
    [[nodiscard]] uint32_t threads_max() const { return threads_max_; }
    [[nodiscard]] PooledQueue* queue() const { return queue_; }
    [[nodiscard]] uint64_t stack_bytes() const { return stack_bytes_; }

    // The number of participants without the owner. `join` is called under the pool's lock.
    [[nodiscard]] uint32_t participants() const {
        return participants_.load(std::memory_order_relaxed) & ~owner_sleeps;
    }
    void join() { participants_.fetch_add(1, std::memory_order_relaxed); }
    void leave();
    // Called by the owner: returns when every participant has left.
    void wait_for_participants();

    // The next task in the pool's list.
    ParallelTask* next_open = nullptr;

private:
    static constexpr uint32_t parts_max = 32;
    static constexpr uint32_t owner_sleeps = uint32_t{1} << 31;
    // What is left of a part, in one word, because threads take from both ends. Counted in steps from the task's first unit: a step is more than one unit
    // in tasks of more than 2^32 units.
    struct Steps {
        uint32_t begin = 0, end = 0;
    };
    struct alignas(64) Part {
        std::atomic<Steps> left{Steps{}};
    };
    enum class From : uint8_t { begin, end };

    [[nodiscard]] uint32_t part_of(Place place) const;
    UnitRange take(Part& part, From from);
    [[nodiscard]] UnitRange units_of(Steps steps) const;

    void* const context_;
    const Run run_;
    const Prepare prepare_;
    const UnitRange units_;
    const uint64_t step_;  // units
    const uint32_t chunk_min_;  // steps
    const uint32_t threads_max_;
    const uint32_t part_count_;
    PooledQueue* const queue_;
    const uint64_t stack_bytes_;
    std::array<Part, parts_max> parts_;
    std::atomic<uint64_t> left_;  // the units that no thread has taken
    std::atomic<uint32_t> participants_{0};
};

}  // namespace polder::devices
