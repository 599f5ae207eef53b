// Addresses are compared by their base without constant offsets: two accesses with the same base and type are neighbours, and their
// offsets show which member of a structure each accesses.
#include "block_accesses.h"

#include <algorithm>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

// In the lanes' copies of a private array, which may be interleaved, elements side by side in one copy are not side by side in memory.
bool is_private(const llvm::Instruction& access) {
    return llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(llvm::getLoadStorePointerOperand(&access), 0));
}

// Whether the stores and what is between them only access places that cannot be the same: between are loads of private variables whose addresses nothing
// else knows, and the stores are to memory that the kernel was given. `first`: the first of the stores in the block.
bool has_private_loads_between(const llvm::Instruction& first, llvm::ArrayRef<PlacedAccess> stores) {
    const llvm::Value* const stored = llvm::getUnderlyingObject(llvm::getLoadStorePointerOperand(&first), 0);
    if (!llvm::isa<llvm::Argument, llvm::LoadInst>(stored))
        return false;
    size_t left = stores.size();
    for (const llvm::Instruction* at = &first; at != nullptr; at = at->getNextNode()) {
        if (llvm::any_of(stores, [&](const PlacedAccess& store) { return store.access == at; })) {
            if (--left == 0)
                return true;
        } else if (at->mayReadOrWriteMemory() && !is_load_of_private(*at)) {
            return false;
        }
    }
    return false;
}

// How many of the loads, from the first one on, are of adjacent elements that one lane can load at once.
size_t length_of_structure(llvm::ArrayRef<PlacedAccess> loads) {
    const llvm::DataLayout& layout = loads.front().access->getDataLayout();
    llvm::Type* const type = llvm::getLoadStoreType(loads.front().access);
    if (!layout.typeSizeEqualsStoreSize(type) || layout.getTypeStoreSize(type) != layout.getTypeAllocSize(type))
        return 1;
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue());
    size_t count = 1;
    while (count < std::min<size_t>(loads.size(), lane_structure_max) &&
           loads[count].offset == loads[count - 1].offset + bytes)
        ++count;
    return count;
}

}  // namespace

bool is_load_of_private(const llvm::Instruction& instruction) {
    if (instruction.hasMetadata(llvm::LLVMContext::MD_invariant_load))
        return true;
    if (!llvm::isa<llvm::LoadInst>(instruction) || !is_simple_access(instruction))
        return false;
    const llvm::Value* const variable = llvm::getUnderlyingObject(llvm::getLoadStorePointerOperand(&instruction), 0);
    return llvm::isa<llvm::AllocaInst>(variable) && !llvm::PointerMayBeCaptured(variable, /*ReturnCaptures=*/true);
}

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
    // A load of what no store changes may stand between the stores of a group.
    size_t number = 0;
    for (llvm::Instruction& instruction : block) {
        if (instruction.mayReadOrWriteMemory())
            numbers_[&instruction] = instruction.hasMetadata(llvm::LLVMContext::MD_invariant_load) ? number : number++;
        if (!is_simple_access(instruction))
            continue;
        const Place place = place_of(instruction);
        neighbours_[key_of(instruction, place.base)].push_back({place.offset, &instruction});
    }
    for (auto& [key, neighbours] : neighbours_)
        llvm::sort(neighbours, [](const PlacedAccess& a, const PlacedAccess& b) {
            return a.offset != b.offset ? a.offset < b.offset : a.access->comesBefore(b.access);
        });
    for (const auto& [key, neighbours] : neighbours_)
        divide_into_groups(neighbours);
}

// Once for all neighbours, because a long block may have thousands of them.
void BlockAccesses::divide_into_groups(llvm::ArrayRef<PlacedAccess> neighbours) {
    if (is_private(*neighbours.front().access))
        return;
    for (size_t first = 0, count = 1; first < neighbours.size(); first += count) {
        const llvm::ArrayRef<PlacedAccess> rest = neighbours.drop_front(first);
        count = llvm::isa<llvm::LoadInst>(rest.front().access) ? length_of_structure(rest) : length_of_number(rest);
        if (count > 1)
            for (const PlacedAccess& member : rest.take_front(count))
                groups_[member.access] = {first, count};
    }
}

llvm::ArrayRef<PlacedAccess> BlockAccesses::neighbours_of(const llvm::Instruction& access) const {
    return neighbours_.find(key_of(access, place_of(access).base))->second;
}

llvm::SmallVector<llvm::LoadInst*, lane_structure_max> BlockAccesses::structure_of(llvm::LoadInst& load) const {
    const auto found = groups_.find(&load);
    if (found == groups_.end())
        return {&load};
    llvm::SmallVector<llvm::LoadInst*, lane_structure_max> run;
    for (const PlacedAccess& member : neighbours_of(load).slice(found->second.first, found->second.count))
        run.push_back(llvm::cast<llvm::LoadInst>(member.access));
    return run;
}

// Whether the stores are of adjacent elements, without another access between them that may meet them.
bool BlockAccesses::are_one_number(llvm::ArrayRef<PlacedAccess> stores, int64_t bytes) const {
    constexpr size_t between_max = 8;
    size_t earliest = SIZE_MAX, latest = 0;
    const llvm::Instruction* first = nullptr;
    for (const auto& [place, store] : llvm::enumerate(stores)) {
        if (store.offset != stores.front().offset + static_cast<int64_t>(place) * bytes)
            return false;
        const size_t number = number_of(*store.access);
        if (number < earliest)
            first = store.access;
        earliest = std::min(earliest, number);
        latest = std::max(latest, number);
    }
    const size_t others = latest - earliest + 1 - stores.size();
    return others == 0 || (others <= between_max && has_private_loads_between(*first, stores));
}

// How many of the stores, from the first one on, are one number; 1 when no two are. The longest number that is possible is taken.
size_t BlockAccesses::length_of_number(llvm::ArrayRef<PlacedAccess> stores) const {
    // Vectors of 16 bytes are made of words: smaller elements would take more shuffles than stores are saved.
    constexpr int64_t longest_bytes = 16, shortest_bytes = 2, word_bytes = 4;
    const llvm::DataLayout& layout = stores.front().access->getDataLayout();
    llvm::Type* const type = llvm::getLoadStoreType(stores.front().access);
    if (type->isVectorTy() || type->isPointerTy() || !layout.typeSizeEqualsStoreSize(type))
        return 1;
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue());
    for (int64_t size = longest_bytes; size >= shortest_bytes && size > bytes; size /= 2)
        if (const auto count = static_cast<size_t>(size / bytes); size % bytes == 0 && count <= stores.size() &&
                                                                  (size < longest_bytes || bytes >= word_bytes) &&
                                                                  are_one_number(stores.take_front(count), bytes))
            return count;
    return 1;
}

llvm::SmallVector<llvm::StoreInst*, 8> BlockAccesses::number_with(llvm::StoreInst& store) const {
    const auto found = groups_.find(&store);
    if (found == groups_.end())
        return {&store};
    llvm::SmallVector<llvm::StoreInst*, 8> group;
    for (const PlacedAccess& member : neighbours_of(store).slice(found->second.first, found->second.count))
        group.push_back(llvm::cast<llvm::StoreInst>(member.access));
    return group;
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
