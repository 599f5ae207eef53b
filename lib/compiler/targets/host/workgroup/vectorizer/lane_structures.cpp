// Loads of structures: where lanes load elements side by side, each lane's are one load. The lanes' structures are then divided into vectors, one for
// each element, by exchanges of elements in registers.
#include "lane_access.h"
#include "lane_code.h"

#include <llvm/Analysis/VectorUtils.h>

namespace polder::compiler::workgroup {

bool LaneCode::is_whole_structure(llvm::LoadInst& load, const LaneAccess& access,
                                  llvm::ArrayRef<llvm::Instruction*> group) {
    // Smaller ones are a number each.
    constexpr uint64_t bits_min = 128;
    const auto structure = accesses_.structure_of(load);
    return access.is_whole_group() && group.size() == structure.size() && structure.size() == lane_structure_max &&
           load.getType()->getPrimitiveSizeInBits() * structure.size() >= bits_min &&
           accesses_.is_loaded_at_once(*load.getType(), structure.size()) &&
           llvm::equal(group, structure, [](const auto* one, const auto* other) { return one == other; });
}

// Either way all elements are loaded in the order of memory, and divided behind both. A copy stores them in this order again: LLVM then
// neither divides nor joins them.
llvm::SmallVector<llvm::Value*, lane_structure_max> LaneCode::load_checked_structures(llvm::LoadInst& load,
                                                                                      const LaneAccess& access,
                                                                                      const PlaceCheck& check,
                                                                                      llvm::Value* mask) {
    llvm::Type* const element = load.getType();
    const auto elements = static_cast<unsigned>(access.group.size());
    const uint64_t bytes = load.getDataLayout().getTypeStoreSize(element).getFixedValue();
    const llvm::Align align = llvm::cast<llvm::LoadInst>(access.group.front())->getAlign();
    const int64_t distance = elements_between(load, *access.group.front()) * static_cast<int64_t>(bytes);
    auto* const one = llvm::FixedVectorType::get(element, elements);
    auto* const all = llvm::FixedVectorType::get(element, elements * width_);
    const TwoWays ways = branch_on(check.condition);
    builder_.SetInsertPoint(ways.together);
    llvm::Value* const begin =
        builder_.CreateGEP(builder_.getInt8Ty(), check.first, builder_.getInt64(static_cast<uint64_t>(distance)));
    llvm::Value* const row = builder_.CreateAlignedLoad(all, begin, llvm::commonAlignment(align, bytes));
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.apart);
    llvm::SmallVector<llvm::Value*> structures;
    for (llvm::Value* place : lane_addresses(load.getPointerOperand(), align, distance, mask))
        structures.push_back(builder_.CreateAlignedLoad(one, place, align));
    llvm::Value* const apart = llvm::concatenateVectors(builder_, structures);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
    llvm::PHINode* const loaded = builder_.CreatePHI(all, 2);
    loaded->addIncoming(row, ways.together);
    loaded->addIncoming(apart, ways.apart);
    for (unsigned lane = 0; lane < width_; ++lane)
        structures[lane] =
            builder_.CreateShuffleVector(loaded, llvm::createSequentialMask(lane * elements, elements, 0));
    return transposed(builder_, structures);
}

// Each lane's elements, where structures of them are one load. `group`: loads at constant distances from `load`.
llvm::SmallVector<llvm::Value*, 4>
LaneCode::load_group_apart(llvm::LoadInst& load, llvm::ArrayRef<llvm::Instruction*> group, llvm::Value* mask) {
    llvm::Value* const address = load.getPointerOperand();
    llvm::Type* const type = load.getType();
    const auto bytes = static_cast<int64_t>(load.getDataLayout().getTypeStoreSize(type).getFixedValue());
    llvm::SmallDenseMap<llvm::Instruction*, llvm::Value*> loaded;
    for (llvm::Instruction* member : group) {
        if (loaded.contains(member))
            continue;
        const auto structure = accesses_.structure_of(llvm::cast<llvm::LoadInst>(*member));
        const bool is_here = llvm::all_of(structure, [&](auto* one) { return llvm::is_contained(group, one); });
        if (!is_here || !accesses_.is_loaded_at_once(*type, structure.size())) {
            const llvm::Align align = llvm::cast<llvm::LoadInst>(member)->getAlign();
            loaded[member] = load_apart(*type, align, address, elements_between(load, *member) * bytes, mask);
            continue;
        }
        const int64_t distance = elements_between(load, *structure.front()) * bytes;
        const auto values =
            load_structures(*type, structure.size(), structure.front()->getAlign(), address, distance, mask);
        for (const auto [one, value] : llvm::zip(structure, values))
            loaded[one] = value;
    }
    llvm::SmallVector<llvm::Value*, 4> values;
    for (llvm::Instruction* member : group)
        values.push_back(loaded[member]);
    return values;
}

llvm::SmallVector<llvm::Value*, lane_structure_max> LaneCode::load_structures(llvm::Type& type, size_t count,
                                                                              llvm::Align align, llvm::Value* address,
                                                                              int64_t distance, llvm::Value* mask) {
    const auto elements = static_cast<unsigned>(count);
    // A vector of three words is two loads, and a lane's words are put together one by one: two words as one number and a third are faster.
    constexpr unsigned word = 32;
    if (elements == 3 && type.getPrimitiveSizeInBits() == word) {
        constexpr uint64_t pair = 8;
        auto values = load_structures(type, 2, align, address, distance, mask);
        values.push_back(
            load_apart(type, llvm::commonAlignment(align, pair), address, distance + static_cast<int64_t>(pair), mask));
        return values;
    }
    const unsigned bits = elements * static_cast<unsigned>(type.getPrimitiveSizeInBits());
    const bool is_number =
        llvm::isPowerOf2_64(elements) && bits != 0 && bits <= 64;  // pointers have no size of their own
    if (is_number) {
        llvm::Value* all = load_part(*builder_.getIntNTy(bits), align, address, distance, mask);
        all = builder_.CreateBitCast(all, llvm::FixedVectorType::get(&type, width_ * elements));
        llvm::SmallVector<llvm::Value*, lane_structure_max> values;
        for (unsigned element = 0; element < elements; ++element)
            values.push_back(builder_.CreateShuffleVector(all, llvm::createStrideMask(element, elements, width_)));
        return values;
    }
    const auto addresses = lane_addresses(address, align, distance, mask);
    llvm::SmallVector<llvm::Value*> structures;
    for (llvm::Value* place : addresses) {
        llvm::Value* one = builder_.CreateAlignedLoad(llvm::FixedVectorType::get(&type, elements), place, align);
        if (elements == 3)
            one = builder_.CreateShuffleVector(one, {0, 1, 2, llvm::PoisonMaskElem});
        structures.push_back(one);
    }
    return transposed(builder_, structures);
}

}  // namespace polder::compiler::workgroup
