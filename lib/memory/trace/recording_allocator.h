// Decorators of an allocator and its source that record all calls. They exist only when a trace is recorded, so that
// allocation costs nothing more otherwise. Any thread.
#pragma once

#include <memory/allocator.h>
#include <memory/region_source.h>
#include <memory/trace.h>

#include <memory>

namespace polder::memory::trace {

class RecordingSource final : public RegionSource, private GrowableRegions {
public:
    RecordingSource(std::unique_ptr<RegionSource> source, SpaceId space) : source_(std::move(source)), space_(space) {}

    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size) override;
    void release(driver::Memory memory) override;
    [[nodiscard]] ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override {
        return source_->preferred_size(needed, reserved);
    }
    [[nodiscard]] ByteCount available() const override { return source_->available(); }
    void discard(driver::Memory range) override { source_->discard(range); }
    void prepare(driver::Memory range) override { source_->prepare(range); }
    [[nodiscard]] ByteCount resident(driver::Memory range) const override { return source_->resident(range); }
    [[nodiscard]] bool discards() const override { return source_->discards(); }
    [[nodiscard]] GrowableRegions* growable() override { return source_->growable() ? this : nullptr; }

private:
    [[nodiscard]] Alignment page() const override { return source_->growable()->page(); }
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount size) override {
        return source_->growable()->reserve_addresses(size);
    }
    void release_addresses(driver::Memory range) override { source_->growable()->release_addresses(range); }
    [[nodiscard]] Result<void> commit(driver::Memory range) override;
    void decommit(driver::Memory range) override;
    [[nodiscard]] bool is_slow() const override { return source_->growable()->is_slow(); }

    const std::unique_ptr<RegionSource> source_;
    const SpaceId space_;
};

class RecordingAllocator final : public Allocator {
public:
    RecordingAllocator(std::unique_ptr<Allocator> allocator, SpaceId space)
        : allocator_(std::move(allocator)), space_(space) {}

    using Allocator::lease;
    [[nodiscard]] Result<void> lease(std::span<const LeaseRequest> requests, const LeaseTerms& terms,
                                     std::span<Lease> leases) override;
    void free_after(const Block& block, Timepoints&& after) noexcept override;
    [[nodiscard]] bool charge(ByteCount bytes) override { return allocator_->charge(bytes); }
    void discharge(ByteCount bytes) noexcept override { allocator_->discharge(bytes); }
    void drain() override { allocator_->drain(); }
    void trim() override { allocator_->trim(); }
    [[nodiscard]] bool open_hole(const LeaseRequest& request, std::span<const Block> movable,
                                 std::vector<uint32_t>& to_move) override {
        return allocator_->open_hole(request, movable, to_move);
    }
    void close_hole() noexcept override { allocator_->close_hole(); }
    void set_limit(ByteCount limit) override { allocator_->set_limit(limit); }
    [[nodiscard]] ByteCount limit() const override { return allocator_->limit(); }
    [[nodiscard]] Statistics statistics() const override { return allocator_->statistics(); }
    void reset_peak(Peak peak) override { allocator_->reset_peak(peak); }
    [[nodiscard]] ByteCount resident() const override { return allocator_->resident(); }
    [[nodiscard]] ByteCount free_bytes() const override { return allocator_->free_bytes(); }
    [[nodiscard]] bool validate() const override { return allocator_->validate(); }

private:
    const std::unique_ptr<Allocator> allocator_;
    const SpaceId space_;
};

} // namespace polder::memory::trace
