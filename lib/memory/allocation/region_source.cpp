// Host memory is mapped with mmap and without a reservation of swap space, aligned for large pages. Device memory comes from the driver.
#include "huge_page.h"
#include "system_memory.h"

#include <base/sizes.h>
#include <memory/region_source.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace polder::memory {
namespace {

constexpr uint64_t first_region_bytes = 64 * MiB;
// Blocks of this size or larger are assumed to be used in large parts, so they get large pages.
constexpr uint64_t large_block_bytes = 8 * MiB;

uint64_t page_bytes() {
    static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

}  // namespace

Result<driver::Memory> HostRegionSource::reserve(ByteCount size) {
    // Maps more than needed, then unmaps what is outside of the aligned part.
    const uint64_t bytes = huge_page.round_up(size.value);
    const uint64_t mapped_bytes = bytes + huge_page.value;
    if (bytes < size.value || mapped_bytes < bytes)
        return fail(Status::mem_object_allocation_failure, "more than the address space");
    void* mapped =
        mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return fail(Status::mem_object_allocation_failure, std::string("mmap: ") + std::strerror(errno));
    const uint64_t first = DeviceAddress::of(mapped).value;
    const uint64_t begin = huge_page.round_up(first);
    if (begin > first)
        munmap(mapped, begin - first);
    if (const uint64_t behind = first + mapped_bytes - (begin + bytes); behind > 0)
        munmap(DeviceAddress{begin + bytes}.host(), behind);
    return driver::Memory{DeviceAddress{begin}, bytes};
}

void HostRegionSource::release(driver::Memory memory) { munmap(memory.address.host(), memory.size); }

// A page more, so that the only block of a region can begin anywhere in the first one.
ByteCount HostRegionSource::preferred_size(ByteCount needed, ByteCount reserved) const {
    const uint64_t with_page = std::max(needed.value, needed.value + RegionAllocator::page_bytes);
    return std::max({ByteCount{with_page}, reserved, ByteCount{first_region_bytes}});
}

ByteCount HostRegionSource::available() const {
    const SystemMemory now = SystemMemory::now();
    return now.available.value != 0 ? now.usable() : total();
}

void HostRegionSource::discard(driver::Memory range) {
    const Alignment page{page_bytes()};
    const uint64_t begin = page.round_up(range.address.value);
    const uint64_t end = (range.address.value + range.size) & ~(page.value - 1);
    if (begin < end)
        madvise(DeviceAddress{begin}.host(), end - begin, MADV_DONTNEED);
}

void HostRegionSource::prepare(driver::Memory range) {
    // A block that begins in the first page of a large page, as those that are spread in pages do, gets all of the large page.
    const uint64_t first = range.address.value & ~(huge_page.value - 1);
    const bool begins_there = range.address.value - first < page_bytes();
    const uint64_t begin = begins_there ? first : huge_page.round_up(range.address.value);
    const uint64_t end = (range.address.value + range.size) & ~(huge_page.value - 1);
    if (begin < end && end - begin >= large_block_bytes - huge_page.value)
        madvise(DeviceAddress{begin}.host(), end - begin, MADV_HUGEPAGE);  // advice: may fail
}

// The system lists the pages of a range, one byte for each.
ByteCount HostRegionSource::resident(driver::Memory range) const {
    unsigned char pages[4096];
    const uint64_t part_bytes = sizeof pages * page_bytes();
    uint64_t resident = 0;
    for (uint64_t done = 0; done < range.size; done += part_bytes) {
        const uint64_t bytes = std::min(part_bytes, range.size - done);
        if (mincore(range.address.plus(done).host(), bytes, pages) != 0)
            continue;  // another thread has released it
        const uint64_t count = (bytes + page_bytes() - 1) / page_bytes();
        for (uint64_t page = 0; page < count; ++page)
            resident += (pages[page] & 1) * page_bytes();
    }
    return ByteCount{resident};
}

ByteCount HostRegionSource::total() {
    static const ByteCount bytes{static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes()};
    return bytes;
}

ByteCount DeviceRegionSource::preferred_size(ByteCount needed, ByteCount reserved) const {
    const ByteCount everything = device_.available_memory();
    const uint64_t first = device_.info().region_bytes;
    const ByteCount wanted = first == 0 ? everything : std::min(everything, std::max(reserved, ByteCount{first}));
    return std::max(needed, wanted);
}

}  // namespace polder::memory
