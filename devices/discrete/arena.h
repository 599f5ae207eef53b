// Arena: the memory of a discrete device, and its local memory.
//
// The runtime uses the addresses of a *window*, a mapping without access rights. The bytes are in another mapping, which only the
// device's own threads access. So a host thread that uses a device address as a pointer gets a segmentation fault at
// once. There are more addresses than memory: pages are committed when regions are reserved or grow, up to the size of the
// memory. Bufalloc allocates the addresses and the local memory.
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

// A mapping of anonymous pages, which get memory when they are written.
class Mapping {
public:
    enum class Access : uint8_t { none, read_write };
    Mapping() = default;
    // size() is 0 when the mapping failed.
    Mapping(uint64_t size, Access access);
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();

    [[nodiscard]] std::byte* begin() const { return begin_; }
    [[nodiscard]] uint64_t size() const { return size_; }
    // Makes a range of pages readable and writable. False when the system has no memory for it.
    [[nodiscard]] bool commit(ByteRange range) const;
    // Gives the pages of a range back to the system; their contents are lost, and an access faults.
    void decommit(ByteRange range) const;

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
    [[nodiscard]] ByteCount size() const { return ByteCount{memory_bytes_}; }
    [[nodiscard]] devices::AddressWindow window() const;

    // The functions of driver::VirtualMemory.
    [[nodiscard]] Alignment page() const;
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount size);
    void release_addresses(driver::Memory range);
    [[nodiscard]] Result<void> commit(driver::Memory range);
    void decommit(driver::Memory range);

    // Local memory of work-groups.
    [[nodiscard]] std::byte* allocate(uint64_t bytes) override;
    void release(std::byte* memory, uint64_t bytes) override;

private:
    Arena(Mapping window, Mapping bytes, Mapping local, uint64_t memory_bytes);

    [[nodiscard]] Result<RegionAllocator::Block> take_addresses(ByteCount size, Alignment alignment)
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] RegionAllocator::Block give_addresses(uint64_t offset) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Result<void> check_room(ByteCount size) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] Result<void> commit_range(ByteRange range) POLDER_REQUIRES(mutex_);
    [[nodiscard]] ByteRange range_of(driver::Memory memory) const {
        return ByteRange::at(memory.address.value - DeviceAddress::of(window_.begin()).value, ByteCount{memory.size});
    }

    const Mapping window_;
    const Mapping bytes_;
    const Mapping local_;
    const uint64_t memory_bytes_;
    mutable Mutex mutex_;
    RegionAllocator addresses_ POLDER_GUARDED_BY(mutex_);
    uint64_t committed_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    RegionAllocator local_region_ POLDER_GUARDED_BY(mutex_);
    std::unordered_map<uint64_t, RegionAllocator::Block> blocks_ POLDER_GUARDED_BY(mutex_);  // by offset
    std::unordered_map<uint64_t, RegionAllocator::Block> local_blocks_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::discrete
