// A part's rest is one atomic word with both of its ends, because its owners take chunks from the beginning and other threads from the end. A counter of
// all that is left says when a thread need not look any further. The owner of the task spins, then sleeps until the last participant has left.
#include <algorithm>
#include <bit>
#include <host/parallel_task.h>
#include <limits>

namespace polder::devices {
namespace {

// The least power of two such that so many units are fewer than 2^32 steps.
uint64_t step_for(uint64_t units) { return std::bit_ceil((units >> 32) + 1); }

uint64_t in_steps(uint64_t units, uint64_t step) { return units / step + (units % step != 0 ? 1 : 0); }

}  // namespace

ParallelTask::ParallelTask(const Shape& shape, void* context, Run run, Prepare prepare)
    : context_(context), run_(run), prepare_(prepare), units_(shape.units),
      step_(step_for(shape.units.end - shape.units.begin)),
      chunk_min_(static_cast<uint32_t>(
          std::clamp<uint64_t>(in_steps(shape.chunk_min, step_), 1, std::numeric_limits<uint32_t>::max()))),
      threads_max_(std::max<uint32_t>(shape.threads_max, 1)), part_count_(std::min(threads_max_, parts_max)),
      queue_(shape.queue), stack_bytes_(shape.stack_bytes),
      left_(in_steps(shape.units.end - shape.units.begin, step_)) {
    const auto total = static_cast<uint32_t>(left_.load(std::memory_order_relaxed));
    const uint32_t share = total / part_count_, longer_parts = total % part_count_;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < part_count_; ++i) {
        const uint32_t end = begin + share + (i < longer_parts ? 1 : 0);
        parts_[i].left.store({begin, end}, std::memory_order_relaxed);
        begin = end;
    }
}

// Threads on neighbouring processors share a part where there are fewer parts than processors, unless few threads take part: these may run on neighbours.
uint32_t ParallelTask::part_of(Place place) const {
    if (threads_max_ < place.width)
        return place.rank % part_count_;
    return static_cast<uint32_t>(uint64_t{place.rank} * part_count_ / place.width) % part_count_;
}

UnitRange ParallelTask::units_of(Steps steps) const {
    const uint64_t end = units_.begin + steps.end * step_;
    return {units_.begin + steps.begin * step_, std::min(end, units_.end)};
}

UnitRange ParallelTask::take(Part& part, From from) {
    // A chunk is a quarter of a thread's equal share of the remaining units.
    const uint32_t divisor = 4 * (threads_max_ / part_count_);
    Steps left = part.left.load(std::memory_order_relaxed);
    while (left.begin < left.end) {
        const uint32_t count = std::min(left.end - left.begin, std::max(chunk_min_, (left.end - left.begin) / divisor));
        const Steps chunk =
            from == From::begin ? Steps{left.begin, left.begin + count} : Steps{left.end - count, left.end};
        const Steps rest = from == From::begin ? Steps{chunk.end, left.end} : Steps{left.begin, chunk.begin};
        if (part.left.compare_exchange_weak(left, rest, std::memory_order_relaxed)) {
            left_.fetch_sub(count, std::memory_order_relaxed);
            return units_of(chunk);
        }
    }
    return {};
}

bool ParallelTask::work(Workspace& workspace, Place place, const std::atomic<uint32_t>* leave_early) {
    if (prepare_ && prepare_(context_, workspace) != Workspace::Growth::enough)
        return false;
    bool any = false;
    const uint32_t first_part = part_of(place);
    for (uint32_t i = 0; i < part_count_ && has_work(); ++i) {
        Part& part = parts_[(first_part + i) % part_count_];
        for (;;) {
            if (leave_early && leave_early->load(std::memory_order_relaxed) != 0)
                return any;
            const UnitRange units = take(part, i == 0 ? From::begin : From::end);
            if (units.empty())
                break;
            run_(context_, units, workspace);
            any = true;
        }
    }
    return any;
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
