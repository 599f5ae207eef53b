#include <runtime/svm.h>

#include <iterator>

namespace polder::runtime {

SvmHeap::~SvmHeap() {
    for (auto& [address, allocation] : blocks_)
        space_.pool().free(allocation.block, {});
}

Result<void*> SvmHeap::allocate(ByteCount size, Alignment alignment) {
    POLDER_ASSIGN(block, space_.pool().allocate(size, alignment));
    void* pointer = block.address.host();
    Lock lock(mutex_);
    blocks_.emplace(reinterpret_cast<uintptr_t>(pointer), Allocation{block, size});
    return pointer;
}

void SvmHeap::free(void* pointer) {
    Lock lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    if (found == blocks_.end())
        return;
    space_.pool().free(found->second.block, {});
    blocks_.erase(found);
}

std::optional<ByteRange> SvmHeap::find(const void* pointer) const {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    Lock lock(mutex_);
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin())
        return std::nullopt;
    const auto& [start, allocation] = *std::prev(after);
    if (address - start >= allocation.size.value)
        return std::nullopt;
    return ByteRange{address - start, allocation.size.value};
}

} // namespace polder::runtime
