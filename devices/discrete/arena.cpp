// Two mappings of the same size: a window without access rights, whose addresses the runtime uses, and the memory itself. Regions are
// allocated by bufalloc and have the same offset in both.
#include <discrete/arena.h>
#include <polder/kernel_abi.h>
#include <sys/mman.h>
#include <utility>

namespace polder::discrete {
namespace {

constexpr Alignment page{4096};

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

void Mapping::discard(ByteRange range) const { madvise(begin_ + range.begin, range.size(), MADV_DONTNEED); }

Result<std::shared_ptr<Arena>> Arena::create(ByteCount memory, ByteCount local_memory) {
    const uint64_t size = page.round_up(memory.value);
    Mapping window(size, Mapping::Access::none);
    Mapping bytes(size, Mapping::Access::read_write);
    Mapping local(page.round_up(local_memory.value), Mapping::Access::read_write);
    if (window.size() == 0 || bytes.size() == 0 || local.size() == 0)
        return fail(Status::out_of_host_memory,
                    "no address space for a discrete device of " + std::to_string(size) + " bytes");
    return std::shared_ptr<Arena>(new Arena(std::move(window), std::move(bytes), std::move(local)));
}

Arena::Arena(Mapping window, Mapping bytes, Mapping local)
    : window_(std::move(window)), bytes_(std::move(bytes)), local_(std::move(local)), region_(region_of(window_, page)),
      local_region_(region_of(local_, Alignment{local_memory_alignment})) {}

devices::AddressWindow Arena::window() const {
    const uint64_t base = DeviceAddress::of(window_.begin()).value;
    return {base, window_.size(), DeviceAddress::of(bytes_.begin()).value - base};
}

Result<driver::Memory> Arena::reserve(ByteCount size) {
    Lock lock(mutex_);
    const auto block = region_.allocate(size, page);
    if (!block) {
        const RegionAllocator::Statistics now = region_.statistics();
        return fail(Status::mem_object_allocation_failure,
                    "asked for " + std::to_string(size.value) + " bytes of device memory, free are " +
                        std::to_string(now.free.value) + ", at most " + std::to_string(now.largest_free.value) +
                        " in one piece");
    }
    blocks_.emplace(block->offset, *block);
    return driver::Memory{DeviceAddress::of(window_.begin()).plus(block->offset), block->size.value};
}

void Arena::release(driver::Memory memory) {
    Lock lock(mutex_);
    const auto found = blocks_.find(memory.address.value - DeviceAddress::of(window_.begin()).value);
    assert(found != blocks_.end());
    bytes_.discard(found->second.range());
    region_.free(found->second);
    blocks_.erase(found);
}

ByteCount Arena::available() const {
    Lock lock(mutex_);
    return region_.free_bytes();
}

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
