// Addresses are compared by their base without constant offsets: two accesses with the same base and type are neighbours, and their
// offsets show which member of a structure each accesses.
#include "block_accesses.h"

#include <algorithm>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

// In the lanes' copies of a private array, which may be interleaved, elements side by side in one copy are not side by side in memory.
bool is_private(const llvm::Instruction& access) {
    return llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(llvm::getLoadStorePointerOperand(&access), 0));
}

}  // namespace

Place place_of(const llvm::Instruction& access) {
    const llvm::DataLayout& layout = access.getDataLayout();
    const llvm::Value* address = llvm::getLoadStorePointerOperand(&access);
    llvm::APInt offset(layout.getIndexTypeSizeInBits(address->getType()), 0);
    const llvm::Value* base = address->stripAndAccumulateConstantOffsets(layout, offset, true);
    return {base, offset.getSExtValue()};
}

bool is_simple_access(const llvm::Instruction& access) {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&access))
        return load->isSimple();
    const auto* store = llvm::dyn_cast<llvm::StoreInst>(&access);
    return store != nullptr && store->isSimple();
}

BlockAccesses::Key BlockAccesses::key_of(const llvm::Instruction& access, const llvm::Value* base) {
    return {base, llvm::getLoadStoreType(&access), access.getOpcode()};
}

BlockAccesses::BlockAccesses(llvm::BasicBlock& block) {
    for (llvm::Instruction& instruction : block) {
        if (instruction.mayReadOrWriteMemory())
            numbers_.try_emplace(&instruction, numbers_.size());
        if (!is_simple_access(instruction))
            continue;
        const Place place = place_of(instruction);
        neighbours_[key_of(instruction, place.base)].push_back({place.offset, &instruction});
    }
    for (auto& [key, neighbours] : neighbours_)
        llvm::sort(neighbours, [](const PlacedAccess& a, const PlacedAccess& b) {
            return a.offset != b.offset ? a.offset < b.offset : a.access->comesBefore(b.access);
        });
}

llvm::ArrayRef<PlacedAccess> BlockAccesses::neighbours_of(const llvm::Instruction& access) const {
    return neighbours_.find(key_of(access, place_of(access).base))->second;
}

llvm::SmallVector<llvm::LoadInst*, lane_structure_max> BlockAccesses::structure_of(llvm::LoadInst& load) const {
    const llvm::DataLayout& layout = load.getDataLayout();
    llvm::Type* const type = load.getType();
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue());
    llvm::SmallVector<llvm::LoadInst*, lane_structure_max> run{&load};
    if (!is_simple_access(load) || is_private(load) || !layout.typeSizeEqualsStoreSize(type) ||
        layout.getTypeStoreSize(type) != layout.getTypeAllocSize(type))
        return run;
    const llvm::ArrayRef<PlacedAccess> all = neighbours_of(load);
    run.clear();
    for (const PlacedAccess* member = all.begin(); member != all.end(); ++member) {
        const bool follows = member != all.begin() && member->offset == member[-1].offset + bytes;
        if (!follows || run.size() == lane_structure_max) {
            if (llvm::is_contained(run, &load))
                break;
            run.clear();
        }
        run.push_back(llvm::cast<llvm::LoadInst>(member->access));
    }
    return run;
}

// Whether the stores are of adjacent elements, without another access between them.
bool BlockAccesses::are_one_number(llvm::ArrayRef<PlacedAccess> stores, int64_t bytes) const {
    size_t earliest = SIZE_MAX, latest = 0;
    for (const auto& [place, store] : llvm::enumerate(stores)) {
        if (store.offset != stores.front().offset + static_cast<int64_t>(place) * bytes)
            return false;
        earliest = std::min(earliest, number_of(*store.access));
        latest = std::max(latest, number_of(*store.access));
    }
    return latest - earliest + 1 == stores.size();
}

// Takes the longest group first, from the lowest address on.
llvm::SmallVector<llvm::StoreInst*, 8> BlockAccesses::number_with(llvm::StoreInst& store) const {
    constexpr int64_t longest_bytes = 8, shortest_bytes = 2;
    const llvm::DataLayout& layout = store.getDataLayout();
    llvm::Type* const type = store.getValueOperand()->getType();
    if (!is_simple_access(store) || is_private(store) || type->isVectorTy() || type->isPointerTy() ||
        !layout.typeSizeEqualsStoreSize(type))
        return {&store};
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue());
    const llvm::ArrayRef<PlacedAccess> all = neighbours_of(store);
    size_t next = 0;
    while (next < all.size()) {
        size_t taken = 1;
        for (int64_t size = longest_bytes; size >= shortest_bytes && size > bytes && taken == 1; size /= 2)
            if (const auto count = static_cast<size_t>(size / bytes);
                size % bytes == 0 && next + count <= all.size() && are_one_number(all.slice(next, count), bytes))
                taken = count;
        llvm::SmallVector<llvm::StoreInst*, 8> group;
        for (const PlacedAccess& member : all.slice(next, taken))
            group.push_back(llvm::cast<llvm::StoreInst>(member.access));
        if (llvm::is_contained(group, &store))
            return group;
        next += taken;
    }
    return {&store};
}

// Three elements of less than 32 bits are not loaded at once. transposed() exchanges elements between as many vectors as a structure has
// elements, so it needs at least as many lanes.
bool is_loaded_at_once(const llvm::Type& element, size_t elements, unsigned lanes) {
    constexpr uint64_t word = 32;
    const bool is_odd = !llvm::isPowerOf2_64(elements);
    return elements > 1 && !element.isVectorTy() && lanes >= lane_structure_max &&
           !(is_odd && element.getPrimitiveSizeInBits() < word);
}

}  // namespace polder::compiler::workgroup
