// Host memory is mapped with mmap and without a reservation of swap space, aligned for large pages. Device memory comes from the driver.
#include <memory/region_source.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace polder::memory {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;
constexpr Alignment huge_page{2 * MiB};
constexpr uint64_t first_region_bytes = 64 * MiB;
// Blocks from here on are taken to be used in large parts.
constexpr uint64_t large_block_bytes = 8 * MiB;

uint64_t page_bytes() {
    static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

// MemAvailable of /proc/meminfo in bytes; 0 when it cannot be read.
uint64_t available_bytes() {
    std::FILE* file = std::fopen("/proc/meminfo", "re");
    if (file == nullptr)
        return 0;
    constexpr std::string_view label = "MemAvailable:";
    char line[256];
    uint64_t kibibytes = 0;
    while (kibibytes == 0 && std::fgets(line, sizeof line, file) != nullptr) {
        if (std::string_view(line).starts_with(label))
            kibibytes = std::strtoull(line + label.size(), nullptr, 10);
    }
    std::fclose(file);
    return kibibytes * 1024;
}

}  // namespace

Result<driver::Memory> HostRegionSource::reserve(ByteCount size) {
    // More is mapped than needed, then what is outside the aligned part is given back.
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

ByteCount HostRegionSource::preferred_size(ByteCount needed, ByteCount reserved) const {
    return std::max({needed, reserved, ByteCount{first_region_bytes}});
}

ByteCount HostRegionSource::available() const {
    const uint64_t available = available_bytes();
    return available != 0 ? ByteCount{available} : total();
}

void HostRegionSource::discard(driver::Memory range) {
    const Alignment page{page_bytes()};
    const uint64_t begin = page.round_up(range.address.value);
    const uint64_t end = (range.address.value + range.size) & ~(page.value - 1);
    if (begin < end)
        madvise(DeviceAddress{begin}.host(), end - begin, MADV_DONTNEED);
}

void HostRegionSource::prepare(driver::Memory range) {
    const uint64_t begin = huge_page.round_up(range.address.value);
    const uint64_t end = (range.address.value + range.size) & ~(huge_page.value - 1);
    if (begin < end && end - begin >= large_block_bytes - huge_page.value)
        madvise(DeviceAddress{begin}.host(), end - begin, MADV_HUGEPAGE);  // advice: may fail
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
