// Arena: the memory of a discrete device, and its local memory.
//
// The runtime sees the addresses of a *window* that faults when touched; the bytes lie elsewhere, where only the
// device's own threads look for them. So a host thread that takes a device address for a pointer faults at
// once. Both the memory and the local memory are contiguous and allocated by bufalloc.
// Any thread may call any function.
#pragma once

#include <base/mutex.h>
#include <bufalloc/region_allocator.h>

#include <host/host_queue.h>
#include <host/workspace.h>
#include <memory>
#include <polder/driver.h>
#include <unordered_map>

namespace polder::discrete {

// Anonymous pages of this process, backed only where they are written.
class Mapping {
public:
    enum class Access : uint8_t { none, read_write };
    Mapping() = default;
    // size() is 0 when there is no room.
    Mapping(uint64_t size, Access access);
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();

    [[nodiscard]] std::byte* begin() const { return begin_; }
    [[nodiscard]] uint64_t size() const { return size_; }
    // Gives the pages of a range back to the system; their contents are lost.
    void discard(ByteRange range) const;

private:
    std::byte* begin_ = nullptr;
    uint64_t size_ = 0;
};

class Arena final : public devices::LocalMemory {
public:
    [[nodiscard]] static Result<std::shared_ptr<Arena>> create(ByteCount memory, ByteCount local_memory);

    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size);
    void release(driver::Memory memory);
    [[nodiscard]] ByteCount available() const;
    [[nodiscard]] ByteCount size() const { return ByteCount{bytes_.size()}; }
    [[nodiscard]] devices::AddressWindow window() const;

    // Local memory of work-groups.
    [[nodiscard]] std::byte* allocate(uint64_t bytes) override;
    void release(std::byte* memory, uint64_t bytes) override;

private:
    Arena(Mapping window, Mapping bytes, Mapping local);

    const Mapping window_;
    const Mapping bytes_;
    const Mapping local_;
    mutable Mutex mutex_;
    RegionAllocator region_ POLDER_GUARDED_BY(mutex_);
    RegionAllocator local_region_ POLDER_GUARDED_BY(mutex_);
    std::unordered_map<uint64_t, RegionAllocator::Block> blocks_ POLDER_GUARDED_BY(mutex_);  // by offset
    std::unordered_map<uint64_t, RegionAllocator::Block> local_blocks_ POLDER_GUARDED_BY(mutex_);
};

} // namespace polder::discrete
