// Commands on allocations without a counterpart for buffers: clEnqueueSVMMap and clEnqueueSVMUnmap, which map a storage, and
// copies by a device with its own memory from or to host memory that must not move.
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
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(storage_.get());
    }
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
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(storage_.get());
    }
    // The bytes are still mapped.
    void abandon() const override { allocation_->return_map(map_); }

private:
    Ref<const Allocation> allocation_;
    Ref<memory::Storage> storage_;
    Ref<AllocationMap> map_;
};

// clEnqueueMemcpyINTEL where an end is a host or shared allocation and the queue's device has memory of its own. The host uses
// such bytes without maps, so the device copies at the host's address, and the residency records the use there.
class HostEndCopyCommand final : public Command {
public:
    struct End {
        Ref<MemObject> bytes;  // null: plain memory of the host
        std::byte* pointer = nullptr;
        bool stays_on_host = false;
    };
    HostEndCopyCommand(End to, End from, ByteCount size) : to_(std::move(to)), from_(std::move(from)), size_(size) {}
    Result<void> reserve(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        for (const End* const end : {&to_, &from_})
            if (end->bytes)
                storages.push_back(&end->bytes->storage());
    }

private:
    [[nodiscard]] Result<driver::Timepoint> copy(Queue& queue, const memory::Execution& execution) const;
    End to_;
    End from_;
    ByteCount size_;
};

}  // namespace polder::runtime
