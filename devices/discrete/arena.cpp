// Two mappings of the same size: a window without access rights, whose addresses the runtime uses, and the memory itself, of which only
// committed pages can be accessed. A region has the same offset in both.
#include <algorithm>
#include <bit>
#include <discrete/arena.h>
#include <polder/kernel_abi.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <utility>

namespace polder::discrete {
namespace {

constexpr Alignment page_of_host{4096};
// How many bytes of addresses there are for each byte of memory: a region that grows reserves two or three times its memory, and there are
// several regions.
constexpr uint64_t addresses_per_byte = 16;
constexpr uint64_t addresses_max = uint64_t{1} << 43;

// Without spare addresses when the process's address space is limited.
uint64_t addresses_for(uint64_t memory_bytes) {
    rlimit limit{};
    const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? memory_bytes
                      : std::max(memory_bytes, std::min(addresses_max, memory_bytes * addresses_per_byte));
}

RegionAllocator::Region region_of(const Mapping& mapping, Alignment granularity) {
    return {DeviceAddress::of(mapping.begin()), ByteCount{mapping.size()}, granularity};
}

}  // namespace

Mapping::Mapping(uint64_t size, Access access) {
    const int protection = access == Access::none ? PROT_NONE : PROT_READ | PROT_WRITE;
    void* const memory = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    begin_ = static_cast<std::byte*>(memory);
    size_ = size;
}

Mapping::Mapping(Mapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(size_, other.size_);
    return *this;
}

Mapping::~Mapping() {
    if (begin_)
        munmap(begin_, size_);
}

bool Mapping::commit(ByteRange range) const {
    return mprotect(begin_ + range.begin, range.size(), PROT_READ | PROT_WRITE) == 0;
}

// Replaces the pages by a new mapping, because the system counts pages of a mapping that was writable as used. The system may refuse that
// when the process has too many mappings.
void Mapping::decommit(ByteRange range) const {
    void* const begin = begin_ + range.begin;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(begin, range.size(), PROT_NONE, flags, -1, 0) != MAP_FAILED)
        return;
    madvise(begin, range.size(), MADV_DONTNEED);
    mprotect(begin, range.size(), PROT_NONE);
}

Result<std::shared_ptr<Arena>> Arena::create(ByteCount memory, ByteCount local_memory) {
    const uint64_t size = page_of_host.round_up(memory.value);
    const uint64_t addresses = addresses_for(size);
    Mapping window(addresses, Mapping::Access::none);
    Mapping bytes(addresses, Mapping::Access::none);
    Mapping local(page_of_host.round_up(local_memory.value), Mapping::Access::read_write);
    if (window.size() == 0 || bytes.size() == 0 || local.size() == 0)
        return fail(Status::out_of_host_memory,
                    "no address space for a discrete device of " + std::to_string(size) + " bytes");
    return std::shared_ptr<Arena>(new Arena(std::move(window), std::move(bytes), std::move(local), size));
}

Arena::Arena(Mapping window, Mapping bytes, Mapping local, uint64_t memory_bytes)
    : window_(std::move(window)), bytes_(std::move(bytes)), local_(std::move(local)), memory_bytes_(memory_bytes),
      addresses_(region_of(window_, page_of_host)),
      local_region_(region_of(local_, Alignment{local_memory_alignment})) {}

devices::AddressWindow Arena::window() const {
    const uint64_t base = DeviceAddress::of(window_.begin()).value;
    return {base, window_.size(), DeviceAddress::of(bytes_.begin()).value - base};
}

Result<RegionAllocator::Block> Arena::take_addresses(ByteCount size, Alignment alignment) {
    const auto block = addresses_.allocate(size, alignment);
    if (!block)
        return fail(Status::mem_object_allocation_failure,
                    "no addresses for " + std::to_string(size.value) + " bytes of device memory");
    blocks_.emplace(block->offset, *block);
    return *block;
}

RegionAllocator::Block Arena::give_addresses(uint64_t offset) {
    const auto found = blocks_.find(offset);
    assert(found != blocks_.end());
    const RegionAllocator::Block block = found->second;
    addresses_.free(block);
    blocks_.erase(found);
    return block;
}

Result<void> Arena::check_room(ByteCount size) const {
    if (size.value <= memory_bytes_ - committed_bytes_)
        return {};
    return fail(Status::mem_object_allocation_failure, "asked for " + std::to_string(size.value) +
                                                           " bytes of device memory, free are " +
                                                           std::to_string(memory_bytes_ - committed_bytes_));
}

Result<void> Arena::commit_range(ByteRange range) {
    POLDER_TRY(check_room(ByteCount{range.size()}));
    if (!bytes_.commit(range))
        return fail(Status::mem_object_allocation_failure,
                    "the system has no " + std::to_string(range.size()) + " bytes for the device's memory");
    committed_bytes_ += range.size();
    return {};
}

Result<driver::Memory> Arena::reserve(ByteCount size) {
    Lock lock(mutex_);
    POLDER_TRY(check_room(size));
    POLDER_ASSIGN(block, take_addresses(size, page_of_host));
    if (Result<void> committed = commit_range(block.range()); !committed) {
        static_cast<void>(give_addresses(block.offset));
        return fail(std::move(committed).error());
    }
    return driver::Memory{DeviceAddress::of(window_.begin()).plus(block.offset), block.size.value};
}

void Arena::release(driver::Memory memory) {
    Lock lock(mutex_);
    const RegionAllocator::Block block = give_addresses(range_of(memory).begin);
    bytes_.decommit(block.range());
    committed_bytes_ -= block.size.value;
}

ByteCount Arena::available() const {
    Lock lock(mutex_);
    return ByteCount{memory_bytes_ - committed_bytes_};
}

// ---- virtual memory ----

// 1/8192 of the memory, so that unused committed memory, less than two pages for each hole, is small. Not smaller, because each committed or
// uncommitted part is a mapping, of which the system allows a process 65,530.
Alignment Arena::page() const {
    return Alignment{std::clamp(std::bit_floor(memory_bytes_ / 8192), page_of_host.value, uint64_t{2} << 20)};
}

Result<DeviceAddress> Arena::reserve_addresses(ByteCount size) {
    Lock lock(mutex_);
    POLDER_ASSIGN(block, take_addresses(ByteCount{page().round_up(size.value)}, page()));
    return DeviceAddress::of(window_.begin()).plus(block.offset);
}

void Arena::release_addresses(driver::Memory range) {
    Lock lock(mutex_);
    static_cast<void>(give_addresses(range_of(range).begin));
}

Result<void> Arena::commit(driver::Memory range) {
    Lock lock(mutex_);
    return commit_range(range_of(range));
}

void Arena::decommit(driver::Memory range) {
    Lock lock(mutex_);
    bytes_.decommit(range_of(range));
    committed_bytes_ -= range.size;
}

// ---- local memory ----

std::byte* Arena::allocate(uint64_t bytes) {
    Lock lock(mutex_);
    const auto block = local_region_.allocate(ByteCount{bytes}, Alignment{local_memory_alignment});
    if (!block)
        return nullptr;
    local_blocks_.emplace(block->offset, *block);
    return local_.begin() + block->offset;
}

void Arena::release(std::byte* memory, uint64_t) {
    Lock lock(mutex_);
    const auto found = local_blocks_.find(static_cast<uint64_t>(memory - local_.begin()));
    assert(found != local_blocks_.end());
    local_region_.free(found->second);
    local_blocks_.erase(found);
}

}  // namespace polder::discrete
