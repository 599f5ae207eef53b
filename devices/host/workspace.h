// Workspace: the local memory and the scratch memory in which one thread executes work-groups.
//
// It grows when necessary and never shrinks; its contents are undefined. Used by one thread at a time. Local memory is
// allocated by a LocalMemory, so that a device can use its own memory for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace polder::devices {

// The allocator of local memory. Any thread.
class LocalMemory {
public:
    virtual ~LocalMemory() = default;
    // Aligned to local_memory_alignment; null when there is none left.
    [[nodiscard]] virtual std::byte* allocate(uint64_t bytes) = 0;
    virtual void release(std::byte* memory, uint64_t bytes) = 0;
};

// Local memory from the process's heap.
[[nodiscard]] LocalMemory& heap_local_memory();

class Workspace {
public:
    explicit Workspace(LocalMemory& source) : source_(&source) {}
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    ~Workspace();

    enum class Growth : uint8_t { enough, no_memory };
    [[nodiscard]] Growth prepare(uint64_t local_bytes, uint64_t scratch_bytes) {
        if (local_bytes <= local_bytes_ && scratch_bytes <= scratch_bytes_) [[likely]]
            return Growth::enough;
        return grow(local_bytes, scratch_bytes);
    }
    // Null when no local memory was ever requested.
    [[nodiscard]] std::byte* local() const { return local_; }
    [[nodiscard]] std::byte* scratch() const { return scratch_; }

private:
    Growth grow(uint64_t local_bytes, uint64_t scratch_bytes);

    LocalMemory* source_;
    std::byte* local_ = nullptr;
    std::byte* scratch_ = nullptr;
    uint64_t local_bytes_ = 0;
    uint64_t scratch_bytes_ = 0;
};

} // namespace polder::devices
