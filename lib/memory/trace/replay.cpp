// First the events are sorted into steps of each memory space (lease, free, timeline). Then the steps run against a real allocator with
// a simulated source of memory and simulated queues, and only the calls of the allocator are timed.
#include "replay.h"

#include <base/sizes.h>
#include <memory/allocator.h>
#include <memory/region_source.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <memory>

namespace polder::trace {
namespace {

using memory::Lease;
using memory::LeaseTerms;
using memory::WhenFull;

class VirtualSource final : public memory::RegionSource, private memory::GrowableRegions {
public:
    VirtualSource(uint64_t capacity, bool growable, Alignment page)
        : capacity_(capacity), growable_(growable), page_(page) {}

    Result<driver::Memory> reserve(ByteCount size) override {
        ++reserves_;
        if (size > available())
            return fail(Status::mem_object_allocation_failure, "the memory is full");
        add(size.value);
        return driver::Memory{next(size.value), size.value};
    }
    void release(driver::Memory memory) override { reserved_ -= memory.size; }
    // Regions double, as in host memory.
    ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override {
        return std::max({needed, reserved, ByteCount{64 * MiB}});
    }
    ByteCount available() const override { return ByteCount{capacity_ - reserved_}; }
    GrowableRegions* growable() override { return growable_ ? this : nullptr; }

    [[nodiscard]] uint64_t peak() const { return peak_; }
    [[nodiscard]] uint64_t reserves() const { return reserves_; }

private:
    Alignment page() const override { return page_; }
    Result<DeviceAddress> reserve_addresses(ByteCount size) override { return next(size.value); }
    void release_addresses(driver::Memory) override {}
    Result<void> commit(driver::Memory range) override {
        ++reserves_;
        if (range.size > available().value)
            return fail(Status::mem_object_allocation_failure, "the memory is full");
        add(range.size);
        return {};
    }
    void decommit(driver::Memory range) override { reserved_ -= range.size; }

    void add(uint64_t bytes) {
        reserved_ += bytes;
        peak_ = std::max(peak_, reserved_);
    }
    DeviceAddress next(uint64_t size) {
        const DeviceAddress address{next_};
        next_ = Alignment{2 * MiB}.round_up(next_ + size) + 2 * MiB;
        return address;
    }

    const uint64_t capacity_;
    const bool growable_;
    const Alignment page_;
    uint64_t next_ = uint64_t{1} << 32;
    uint64_t reserved_ = 0;
    uint64_t peak_ = 0;
    uint64_t reserves_ = 0;
};

// A simulated queue. The events of the trace advance its timeline, and so does a request that waits.
class VirtualQueue final : public driver::Queue {
public:
    void reach(uint64_t value) {
        if (completed() < value)
            completed_.store(value, std::memory_order_release);
    }
    void wait(uint64_t value) override {
        ++waits;
        reach(value);
    }
    uint64_t waits = 0;

    driver::Timepoint copy(const driver::CopyOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint fill(const driver::FillOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint launch(const driver::LaunchOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint call(const driver::HostOperation&, const driver::Submission&) override { return {}; }
    driver::Timepoint marker(const driver::Submission&) override { return {}; }
    void flush() override {}
};

// One call of the allocator of a space. Blocks have numbers, so that no look-up is timed.
struct Step {
    enum class What : uint8_t { lease, free, completed } what = What::lease;
    uint32_t block = 0;
    uint64_t size = 0;
    VirtualQueue* queue = nullptr;
    uint64_t value = 0;
    bool more_follow = false;
};

// Collects the steps of every space, and the totals of the recording process.
class Steps {
public:
    explicit Steps(const TraceFile& trace) {
        for (const TimedEvent& timed : trace.events)
            if (timed.event.kind == Kind::lease)
                spaces[timed.event.space];  // made first, so that it gets all steps of the kind `completed`
        for (const TimedEvent& timed : trace.events)
            add(timed);
    }
    struct OfSpace {
        std::vector<Step> steps;
        uint32_t blocks = 0;
        std::map<uint64_t, uint32_t> live;  // by address
        std::vector<uint64_t> sizes;  // the requested size of each block
        ReplayOfSpace recorded;
        uint64_t asked = 0;
        uint64_t allocated = 0;
        uint64_t reserved = 0;
    };
    std::map<uint32_t, OfSpace> spaces;
    std::map<uint32_t, std::unique_ptr<VirtualQueue>> queues;

private:
    [[nodiscard]] VirtualQueue* queue(uint32_t number) {
        if (number == 0)
            return nullptr;
        auto& known = queues[number];
        if (!known)
            known = std::make_unique<VirtualQueue>();
        return known.get();
    }
    void add(const TimedEvent& timed) {
        const Event& event = timed.event;
        if (event.kind == Kind::completed) {
            // Blocks of every space may wait for this queue.
            for (auto& [id, space] : spaces)
                space.steps.push_back({Step::What::completed, 0, 0, queue(event.queue), event.value, false});
            return;
        }
        OfSpace& space = spaces[event.space];
        ReplayOfSpace& recorded = space.recorded;
        switch (event.kind) {
        case Kind::space:
            recorded.memory_bytes = event.size;
            recorded.page_bytes = event.extra;
            break;
        case Kind::region_reserve:
            space.reserved += event.size;
            ++recorded.reserves;
            recorded.peak_reserved_bytes = std::max(recorded.peak_reserved_bytes, space.reserved);
            break;
        case Kind::region_release: space.reserved -= std::min(space.reserved, event.size); break;
        case Kind::out_of_memory: ++recorded.out_of_memory; break;
        case Kind::lease:
            space.live[event.address] = space.blocks;
            space.sizes.push_back(event.size);
            space.steps.push_back({Step::What::lease, space.blocks++, event.size, queue(event.queue), 0, false});
            space.asked += event.size;
            space.allocated += event.extra;
            ++recorded.leases;
            ++recorded.operations;
            recorded.peak_asked_bytes = std::max(recorded.peak_asked_bytes, space.asked);
            recorded.peak_allocated_bytes = std::max(recorded.peak_allocated_bytes, space.allocated);
            break;
        case Kind::free: add_free(space, event); break;
        default: break;
        }
    }
    void add_free(OfSpace& space, const Event& event) {
        const auto found = space.live.find(event.address);
        if (found == space.live.end())
            return;  // the block was allocated before recording began
        const bool more_follow = (event.flags & Flags::more_follow) != 0;
        space.steps.push_back({Step::What::free, found->second, 0, queue(event.queue), event.value, more_follow});
        if (more_follow)
            return;
        space.asked -= space.sizes[found->second];
        space.allocated -= std::min(space.allocated, event.size);
        ++space.recorded.operations;
        space.live.erase(found);
    }
};

// The page size of the recorded source, or 2 MiB when the trace has none or is damaged.
Alignment page_of(const ReplayOfSpace& recorded) {
    return Alignment{std::has_single_bit(recorded.page_bytes) ? recorded.page_bytes : 2 * MiB};
}

class Run {
public:
    Run(uint32_t id, const Steps::OfSpace& space, const ReplayOptions& options) : space_(space), blocks_(space.blocks) {
        result_.space = id;
        result_.memory_bytes = options.memory                ? options.memory->value
                               : space.recorded.memory_bytes ? space.recorded.memory_bytes
                                                             : uint64_t{1} << 40;
        auto source = std::make_unique<VirtualSource>(result_.memory_bytes, options.growable, page_of(space.recorded));
        source_ = source.get();
        memory::AllocatorOptions allocator_options;
        allocator_options.space = SpaceId{std::max(id, 1u)};  // not 0: only real host memory may be poisoned
        allocator_ = memory::make_allocator(options.policy, std::move(source), allocator_options);
    }

    ReplayOfSpace run() {
        const auto begin = std::chrono::steady_clock::now();
        for (const Step& step : space_.steps) {
            switch (step.what) {
            case Step::What::completed: step.queue->reach(step.value); break;
            case Step::What::lease: lease(step); break;
            case Step::What::free: free(step); break;
            }
        }
        const auto end = std::chrono::steady_clock::now();
        result_.ns = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
        result_.peak_reserved_bytes = source_->peak();
        result_.reserves = source_->reserves();
        result_.peak_allocated_bytes = allocator_->statistics().live_peak.value;
        result_.retries = allocator_->statistics().retries;
        free_the_rest();
        return result_;
    }

private:
    struct Held {
        memory::Block block;
        bool is_live = false;
    };
    void note(uint64_t decision) { result_.decisions = (result_.decisions ^ decision) * 0x100000001b3; }

    void lease(const Step& step) {
        const LeaseTerms terms{step.queue ? LeaseTerms::Consumer::device : LeaseTerms::Consumer::host, step.queue,
                               WhenFull::wait};
        const auto leased = allocator_->lease(memory::LeaseRequest{ByteCount{step.size}, Alignment{128}}, terms);
        ++result_.operations;
        ++result_.leases;
        if (!leased) {
            ++result_.out_of_memory;
            note(1);
            return;
        }
        note(leased->block.address.value);
        blocks_[step.block] = {leased->block, true};
        asked_ += step.size;
        result_.peak_asked_bytes = std::max(result_.peak_asked_bytes, asked_);
    }
    void free(const Step& step) {
        if (step.queue && step.value != 0)
            after_.push_back({step.queue, step.value});
        if (step.more_follow)
            return;
        Held& held = blocks_[step.block];
        if (held.is_live) {
            allocator_->free(held.block, after_);
            asked_ -= space_.sizes[step.block];
            held.is_live = false;
            ++result_.operations;
        }
        after_.clear();
    }
    void free_the_rest() {
        for (Held& held : blocks_)
            if (std::exchange(held.is_live, false))
                allocator_->free(held.block, {});
    }

    const Steps::OfSpace& space_;
    std::vector<Held> blocks_;
    std::vector<driver::Timepoint> after_;
    VirtualSource* source_ = nullptr;
    std::unique_ptr<memory::Allocator> allocator_;
    uint64_t asked_ = 0;
    ReplayOfSpace result_;
};

}  // namespace

// Spaces share nothing, so each space is replayed with timelines of its own.
std::vector<ReplayOfSpace> replay(const TraceFile& trace, const ReplayOptions& options) {
    std::vector<uint32_t> ids;
    for (const auto& [id, space] : Steps(trace).spaces)
        if (space.blocks != 0)
            ids.push_back(id);
    std::vector<ReplayOfSpace> results;
    for (const uint32_t id : ids) {
        const Steps steps(trace);
        ReplayOfSpace result = Run(id, steps.spaces.at(id), options).run();
        for (const auto& [number, queue] : steps.queues)
            result.waits += queue->waits;
        results.push_back(result);
    }
    return results;
}

std::vector<ReplayOfSpace> recorded(const TraceFile& trace) {
    std::vector<ReplayOfSpace> results;
    for (auto& [id, space] : Steps(trace).spaces) {
        if (space.blocks == 0)
            continue;
        results.push_back(space.recorded);
        results.back().space = id;
    }
    return results;
}

}  // namespace polder::trace
