// The commands that execute code: a kernel launch, and a native kernel.
//
// A launch that has to wait keeps the kernel's arguments and their buffers until it is submitted. From then on the memory
// layer keeps the memory in use, and the queue keeps the code. A repeated launch that can be submitted at once allocates no
// memory from the heap.
#pragma once

#include <base/small_vector.h>
#include <runtime/command.h>
#include <runtime/kernel.h>
#include <runtime/queue.h>

#include <vector>

namespace polder::runtime {

// The buffers of a command; null where an argument has none. Up to eight are stored in the command itself.
class BufferList {
public:
    explicit BufferList(size_t size) {
        buffers_.reserve(size);
        for (size_t i = 0; i < size; ++i)
            buffers_.push_back(nullptr);
    }
    [[nodiscard]] size_t size() const { return buffers_.size(); }
    MemObject*& operator[](size_t index) { return buffers_[index]; }
    MemObject* operator[](size_t index) const { return buffers_[index]; }
    void add_references(std::vector<Ref<const RefCounted>>& kept) const {
        for (MemObject* const buffer : buffers_)
            kept.push_back(Ref<const RefCounted>::share(buffer));
    }
    void add_storages(std::vector<const memory::Storage*>& storages) const {
        for (const MemObject* const buffer : buffers_)
            if (buffer)
                storages.push_back(&buffer->storage());
    }

private:
    SmallVector<MemObject*, 8> buffers_;
};

struct NdRange {
    uint32_t work_dim = 1;
    Size3 offset{0, 0, 0};
    Size3 global{1, 1, 1};
    Size3 local{1, 1, 1};
};

// The code that a launch executes. `keeper` keeps it alive.
struct LaunchCode {
    CodeKeeper* keeper = nullptr;
    const LoadedCode* code = nullptr;
    const compiler::KernelInfo* info = nullptr;
    DeviceAddress program_variables;
    driver::LaunchBlocks blocks = {};
};

class LaunchCommand final : public Command {
public:
    // `buffers` are those of arguments->pointers, one by one; null where there is none. Behind them are those that the kernel
    // may reach by pointers in memory.
    LaunchCommand(const LaunchCode& code, const NdRange& range, const KernelArguments& arguments, BufferList&& buffers)
        : code_(code), range_(range), arguments_(&arguments), buffers_(std::move(buffers)) {}

    Result<void> reserve(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override { buffers_.add_storages(storages); }
    memory::Announcement announce(const Queue& queue) const override;
    Ref<const RecordedOperation> record() const override;
    void keep() override;

private:
    [[nodiscard]] Access access_of(size_t buffer) const {
        return buffer < arguments_->pointers.size() ? code_.info->arguments[arguments_->pointers[buffer].index].access
                                                    : Access::read_write;
    }
    // Of the buffers from number `first` on; those before it have memory.
    [[nodiscard]] Result<void> reserve_from(size_t first, const Queue& queue) const;
    // For POLDER_TRACE.
    void trace(const memory::Execution& execution, driver::Timepoint done, std::span<const memory::Use> uses) const;
    // Records the kernel's name, too.
    void trace_first(const memory::Execution& execution, driver::Timepoint done,
                     std::span<const memory::Use> uses) const;
    friend class RecordedLaunch;
    // The offset of a buffer's address in the packed arguments, and the distance from the buffer's first byte to the address, which is
    // 0 except for addresses that the application gave.
    struct ArgumentPlace {
        uint32_t offset = ~uint32_t{0};  // none: the kernel finds the address in memory
        uint64_t displacement = 0;
        const ImageShape* image = nullptr;  // of an image: its descriptor stands at `offset`
    };
    [[nodiscard]] ArgumentPlace place_of(size_t buffer) const;
    // Writes the kernel's uses of memory, and the offset of each address, to the spans, which have room for every buffer.
    // Returns how many there are.
    size_t list_uses(std::span<memory::Use> uses, std::span<ArgumentPlace> places) const;
    [[nodiscard]] driver::Timepoint launch(driver::Queue& queue, const driver::Submission& submission,
                                           std::span<const ArgumentPlace> places,
                                           std::span<const DeviceAddress> addresses) const;

    LaunchCode code_;
    NdRange range_;
    const KernelArguments* arguments_;
    BufferList buffers_;
    std::vector<Ref<const RefCounted>> kept_;
};

// The bytes of local memory that a work-group needs: the kernel's own and its __local arguments.
[[nodiscard]] uint64_t local_bytes_used(const LoadedCode& code, const KernelArguments& arguments);

using NativeFunction = void(CL_CALLBACK*)(void* arguments);

class NativeCommand final : public Command {
public:
    // `arguments` is the application's block, copied; the address of buffers[i] is put at offsets[i] of the copy that each
    // submission makes of it.
    NativeCommand(NativeFunction function, std::vector<std::byte> arguments, BufferList buffers,
                  std::vector<size_t> offsets)
        : function_(function), arguments_(std::move(arguments)), buffers_(std::move(buffers)),
          offsets_(std::move(offsets)) {}

    Result<void> reserve(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override { buffers_.add_storages(storages); }
    void keep() override { buffers_.add_references(kept_); }

private:
    NativeFunction function_;
    std::vector<std::byte> arguments_;
    BufferList buffers_;
    std::vector<size_t> offsets_;
    std::vector<Ref<const RefCounted>> kept_;
};

}  // namespace polder::runtime
