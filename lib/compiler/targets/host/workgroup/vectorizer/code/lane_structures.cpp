// Loads of structures: where lanes load elements side by side, each lane's are one load. The lanes' structures are then divided into vectors, one for
// each element, by exchanges of elements in registers.
#include "lane_code.h"
#include "one_by_one.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"

#include <llvm/Analysis/VectorUtils.h>

namespace polder::compiler::workgroup {

namespace {

// Structures of up to this size are loaded as one number each.
constexpr unsigned bits_of_number_max = 64;
constexpr uint64_t bits_of_byte = 8;
constexpr unsigned bits_of_word = 32;

// Whether the elements are integers that are only used with more bits.
bool are_extended(llvm::ArrayRef<llvm::LoadInst*> structure) {
    return llvm::all_of(structure, [](const llvm::LoadInst* load) {
        return load->getType()->isIntegerTy() && llvm::all_of(load->users(), [](const llvm::User* user) {
                   return llvm::isa<llvm::ZExtInst, llvm::SExtInst, llvm::UIToFPInst, llvm::SIToFPInst>(user);
               });
    });
}

}  // namespace

bool LaneCode::is_whole_structure(llvm::LoadInst& load, const LaneAccess& access,
                                  llvm::ArrayRef<llvm::Instruction*> group) {
    const auto structure = accesses_.structure_of(load);
    return access.is_whole_group() && group.size() == structure.size() && structure.size() == lane_structure_max &&
           accesses_.is_loaded_at_once(*load.getType(), structure.size()) &&
           llvm::equal(group, structure, [](const auto* one, const auto* other) { return one == other; });
}

// The vector of each element. `structures`: those of all lanes in the order of memory.
llvm::SmallVector<llvm::Value*, lane_structure_max> LaneCode::divided(llvm::Value* structures, unsigned elements) {
    llvm::SmallVector<llvm::Value*, lane_structure_max> values;
    for (unsigned element = 0; element < elements; ++element)
        values.push_back(builder_.CreateShuffleVector(structures, llvm::createStrideMask(element, elements, width_)));
    return values;
}

// The same of structures that are numbers: parts of their bits, which LLVM extends by masking them.
llvm::SmallVector<llvm::Value*, lane_structure_max> LaneCode::bits_of(llvm::Value* numbers, llvm::Type& type,
                                                                      unsigned elements) {
    llvm::SmallVector<llvm::Value*, lane_structure_max> values;
    for (unsigned element = 0; element < elements; ++element) {
        llvm::Value* const moved = builder_.CreateLShr(numbers, uint64_t{element} * type.getIntegerBitWidth());
        values.push_back(builder_.CreateTrunc(moved, wide(&type)));
    }
    return values;
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
    const auto bits = static_cast<unsigned>(bytes * bits_of_byte * elements);
    const bool is_number = bits <= bits_of_number_max;
    llvm::Value* apart = nullptr;
    llvm::SmallVector<llvm::Value*> structures;
    if (is_number) {
        llvm::Value* const numbers =
            load_part(*builder_.getIntNTy(bits), align, load.getPointerOperand(), distance, mask);
        apart = builder_.CreateBitCast(numbers, all);
    } else {
        for (llvm::Value* place : lane_addresses(load.getPointerOperand(), align, distance, mask))
            structures.push_back(builder_.CreateAlignedLoad(one, place, align));
        apart = llvm::concatenateVectors(builder_, structures);
    }
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
    llvm::PHINode* const loaded = builder_.CreatePHI(all, 2);
    loaded->addIncoming(row, ways.together);
    loaded->addIncoming(apart, ways.apart);
    if (is_number)
        return divided(loaded, elements);
    structures.resize(width_);
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
        const auto values = load_structures(*type, structure.size(), structure.front()->getAlign(), address, distance,
                                            mask, are_extended(structure));
        for (const auto [one, value] : llvm::zip(structure, values))
            loaded[one] = value;
    }
    llvm::SmallVector<llvm::Value*, 4> values;
    for (llvm::Instruction* member : group)
        values.push_back(loaded[member]);
    return values;
}

// For each lane a word whose lower three bytes are those beyond `address`. The word begins at an even address, with the first of the bytes or the one before it,
// so it is in no page that the three bytes are not in: a word from an even address is in two pages when its middle is the end of the first one.
llvm::Value* LaneCode::load_words_of_three_bytes(llvm::Value* address, int64_t distance, llvm::Value* mask) {
    llvm::Type& word = *builder_.getInt32Ty();
    const llvm::Align align(2);
    llvm::Value* const places =
        builder_.CreateGEP(builder_.getInt8Ty(), vector(address), builder_.getInt64(static_cast<uint64_t>(distance)));
    auto* const numbers = llvm::cast<llvm::VectorType>(wide(builder_.getInt64Ty()));
    llvm::Value* const even = builder_.CreateIntrinsic(llvm::Intrinsic::ptrmask, {places->getType(), numbers},
                                                       {places, llvm::ConstantInt::get(numbers, ~uint64_t{1})});
    llvm::Value* const words = mask || width_ > accessed_one_by_one_max
                                   ? builder_.CreateMaskedGather(wide(&word), even, align, mask ? mask : all_lanes())
                                   : load_one_by_one(builder_, word, each_of(builder_, *even), align);
    llvm::Value* const odd =
        builder_.CreateAnd(builder_.CreateTrunc(builder_.CreatePtrToInt(places, numbers), wide(&word)), uint64_t{1});
    return builder_.CreateLShr(words, builder_.CreateShl(odd, uint64_t{3}));
}

llvm::SmallVector<llvm::Value*, lane_structure_max> LaneCode::load_structures(llvm::Type& type, size_t count,
                                                                              llvm::Align align, llvm::Value* address,
                                                                              int64_t distance, llvm::Value* mask,
                                                                              bool are_extended) {
    const auto elements = static_cast<unsigned>(count);
    if (accesses_.are_bytes_of_word(type, count))
        return bits_of(load_words_of_three_bytes(address, distance, mask), type, elements);
    // A vector of three words is two loads, and a lane's words are put together one by one: two words as one number and a third are faster.
    constexpr unsigned word = 32;
    if (elements == 3 && type.getPrimitiveSizeInBits() == word) {
        constexpr uint64_t pair = 8;
        auto values = load_structures(type, 2, align, address, distance, mask, false);
        values.push_back(
            load_apart(type, llvm::commonAlignment(align, pair), address, distance + static_cast<int64_t>(pair), mask));
        return values;
    }
    const unsigned bits = elements * static_cast<unsigned>(type.getPrimitiveSizeInBits());
    const bool is_number =
        llvm::isPowerOf2_64(elements) && bits != 0 && bits <= bits_of_number_max;  // pointers have no size of their own
    if (is_number) {
        llvm::Value* all = load_part(*builder_.getIntNTy(bits), align, address, distance, mask);
        if (are_extended && bits <= bits_of_word)
            return bits_of(all, type, elements);
        return divided(builder_.CreateBitCast(all, llvm::FixedVectorType::get(&type, width_ * elements)), elements);
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
