#include <algorithm>
#include <bit>
#include <host/workspace.h>
#include <new>
#include <polder/kernel_abi.h>

namespace polder::devices {
namespace {

constexpr std::align_val_t alignment{local_memory_alignment};

std::byte* allocate_aligned(uint64_t bytes) {
    return static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
}
void release_aligned(std::byte* memory) { ::operator delete(memory, alignment); }

class HeapLocalMemory final : public LocalMemory {
    std::byte* allocate(uint64_t bytes) override { return allocate_aligned(bytes); }
    void release(std::byte* memory, uint64_t) override { release_aligned(memory); }
};

// Rounds a size up, so that kernels whose needs increase do not reallocate each time.
uint64_t rounded(uint64_t bytes) {
    return bytes <= (uint64_t{1} << 20) ? std::bit_ceil(std::max<uint64_t>(bytes, 4096))
                                        : (bytes + 0xfffff) & ~uint64_t{0xfffff};
}

} // namespace

LocalMemory& heap_local_memory() {
    // Never destroyed, because worker threads may use it while the process exits.
    static auto* const memory = new HeapLocalMemory;
    return *memory;
}

Workspace::~Workspace() {
    if (local_)
        source_->release(local_, local_bytes_);
    release_aligned(scratch_);
}

Workspace::Growth Workspace::grow(uint64_t local_bytes, uint64_t scratch_bytes) {
    if (local_bytes > local_bytes_) {
        if (local_)
            source_->release(local_, local_bytes_);
        local_bytes_ = rounded(local_bytes);
        local_ = source_->allocate(local_bytes_);
        if (!local_ && local_bytes_ != local_bytes) {
            local_bytes_ = local_bytes;
            local_ = source_->allocate(local_bytes_);
        }
        if (!local_) {
            local_bytes_ = 0;
            return Growth::no_memory;
        }
    }
    if (scratch_bytes > scratch_bytes_) {
        release_aligned(scratch_);
        scratch_bytes_ = rounded(scratch_bytes);
        scratch_ = allocate_aligned(scratch_bytes_);
        if (!scratch_) {
            scratch_bytes_ = 0;
            return Growth::no_memory;
        }
    }
    return Growth::enough;
}

} // namespace polder::devices
