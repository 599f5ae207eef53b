#include <host/parallel_task.h>

namespace polder::devices {

ParallelTask::ParallelTask(const Shape& shape, void* context, Run run, Prepare prepare)
    : context_(context), run_(run), prepare_(prepare), chunk_min_(std::max<uint64_t>(shape.chunk_min, 1)),
      threads_max_(std::max<uint32_t>(shape.threads_max, 1)), part_count_(std::min(threads_max_, parts_max)),
      left_(shape.units.end - shape.units.begin) {
    const uint64_t total = shape.units.end - shape.units.begin;
    const uint64_t share = total / part_count_, longer_parts = total % part_count_;
    uint64_t begin = shape.units.begin;
    for (uint32_t i = 0; i < part_count_; ++i) {
        parts_[i].next.store(begin, std::memory_order_relaxed);
        begin += share + (i < longer_parts ? 1 : 0);
        parts_[i].end = begin;
    }
}

// Threads on neighbouring processors share a part where there are fewer parts than processors, unless few threads take part: these may run on neighbours.
uint32_t ParallelTask::part_of(Place place) const {
    if (threads_max_ < place.width)
        return place.rank % part_count_;
    return static_cast<uint32_t>(uint64_t{place.rank} * part_count_ / place.width) % part_count_;
}

UnitRange ParallelTask::take(Part& part) {
    // A chunk is a quarter of a thread's equal share of the remaining units.
    const uint64_t divisor = uint64_t{4} * (threads_max_ / part_count_);
    uint64_t begin = part.next.load(std::memory_order_relaxed);
    while (begin < part.end) {
        const uint64_t left = part.end - begin;
        const uint64_t count = std::min(left, std::max(chunk_min_, left / divisor));
        if (part.next.compare_exchange_weak(begin, begin + count, std::memory_order_relaxed)) {
            left_.fetch_sub(count, std::memory_order_relaxed);
            return {begin, begin + count};
        }
    }
    return {};
}

void ParallelTask::work(Workspace& workspace, Place place, const std::atomic<uint32_t>* leave_early) {
    if (prepare_ && prepare_(context_, workspace) != Workspace::Growth::enough)
        return;
    const uint32_t first_part = part_of(place);
    for (uint32_t i = 0; i < part_count_ && has_work(); ++i) {
        Part& mine = parts_[(first_part + i) % part_count_];
        for (;;) {
            if (leave_early && leave_early->load(std::memory_order_relaxed) != 0)
                return;
            const UnitRange units = take(mine);
            if (units.empty())
                break;
            run_(context_, units, workspace);
        }
    }
}

void ParallelTask::leave() {
    std::atomic<uint32_t>* const word = &participants_;
    // The task may be destroyed right after this.
    if (participants_.fetch_sub(1, std::memory_order_acq_rel) == (owner_sleeps | 1))
        futex_wake_one(word);
}

void ParallelTask::wait_for_participants() {
    constexpr uint32_t spins = 1000;
    for (uint32_t i = 0; i < spins; ++i) {
        if (participants_.load(std::memory_order_acquire) == 0)
            return;
        spin_pause();
    }
    uint32_t seen = participants_.fetch_or(owner_sleeps, std::memory_order_acq_rel) | owner_sleeps;
    while (seen != owner_sleeps) {
        futex_wait(participants_, seen);
        seen = participants_.load(std::memory_order_acquire);
    }
}

}  // namespace polder::devices
