// clEnqueueSVMMap and clEnqueueSVMUnmap of an allocation: maps of a storage, as those of buffers.
//
// The other commands on allocations are those on buffers (buffer_commands.h): Allocation::view makes a buffer of their bytes.
#pragma once

#include <runtime/allocation.h>
#include <runtime/command.h>

namespace polder::runtime {

// Runs once: the enqueue call has registered the map.
class SvmMapCommand final : public Command {
public:
    SvmMapCommand(Ref<const Allocation> allocation, Ref<memory::Storage> storage, Ref<AllocationMap> map)
        : allocation_(std::move(allocation)), storage_(std::move(storage)), map_(std::move(map)) {}
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    // The map is not registered any more.
    void abandon() const override { allocation_->cancel_map(*map_); }

private:
    Ref<const Allocation> allocation_;
    Ref<memory::Storage> storage_;
    Ref<AllocationMap> map_;
};

// Runs once: the enqueue call has taken the map.
class SvmUnmapCommand final : public Command {
public:
    SvmUnmapCommand(Ref<const Allocation> allocation, Ref<memory::Storage> storage, Ref<AllocationMap> map)
        : allocation_(std::move(allocation)), storage_(std::move(storage)), map_(std::move(map)) {}
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    // The bytes are still mapped.
    void abandon() const override { allocation_->return_map(map_); }

private:
    Ref<const Allocation> allocation_;
    Ref<memory::Storage> storage_;
    Ref<AllocationMap> map_;
};

}  // namespace polder::runtime
