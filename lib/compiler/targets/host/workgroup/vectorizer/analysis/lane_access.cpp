// The step of an access is the stride that lane_shape finds for its address, divided by the size of an element. find_group() finds the other
// members of an interleave group with BlockAccesses. load_with_step() and store_group() emit the vector accesses and the shuffles.
#include "lane_access.h"

#include "lane_types.h"

#include <algorithm>
#include <cstdlib>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

// The places of the elements of values, given the places of the values.
llvm::SmallVector<int> of_elements(llvm::ArrayRef<int> places, unsigned elements) {
    llvm::SmallVector<int> result;
    llvm::narrowShuffleMaskElts(static_cast<int>(elements), places, result);
    return result;
}

// The mask of lanes for each element of their structures.
llvm::Value* of_structures(llvm::IRBuilder<>& builder, llvm::Value* mask, int64_t elements, unsigned lanes) {
    return builder.CreateShuffleVector(mask, llvm::createReplicatedMask(static_cast<unsigned>(elements), lanes));
}

// The mask of `lanes` elements from number `begin` on, where structures of `step` elements lie side by side and each lane accesses the first `used` ones.
llvm::Value* of_part(llvm::IRBuilder<>& builder, llvm::Value* mask, const LaneAccess& access, unsigned lanes,
                     unsigned begin) {
    const auto step = static_cast<unsigned>(access.step), used = static_cast<unsigned>(access.span + 1);
    llvm::SmallVector<int> places;
    for (unsigned place = begin; place < begin + lanes; ++place)
        places.push_back(static_cast<int>(place % step < used ? place / step : lanes));
    return builder.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), places);
}

// Whether all the stores of a block may happen where the last one is: only loads of other places of the same lane's structure stand between them.
bool may_wait_for_last(llvm::ArrayRef<llvm::Instruction*> stores) {
    const auto before = [](const llvm::Instruction* a, const llvm::Instruction* b) { return a->comesBefore(b); };
    const auto [first, last] = std::minmax_element(stores.begin(), stores.end(), before);
    const auto bytes_of = [](const llvm::Instruction& access) {
        return static_cast<int64_t>(
            access.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&access)).getFixedValue());
    };
    llvm::SmallVector<const llvm::Instruction*, 4> waiting;
    const auto is_other_place = [&](const llvm::Instruction& load) {
        const Place from = place_of(load);
        return llvm::all_of(waiting, [&](const llvm::Instruction* store) {
            const Place to = place_of(*store);
            return from.base == to.base &&
                   (from.offset + bytes_of(load) <= to.offset || to.offset + bytes_of(*store) <= from.offset);
        });
    };
    for (const llvm::Instruction* at = *first; at != *last; at = at->getNextNode()) {
        if (llvm::is_contained(stores, at))
            waiting.push_back(at);
        else if (at->mayReadOrWriteMemory() && !at->hasMetadata(llvm::LLVMContext::MD_invariant_load) &&
                 !(llvm::isa<llvm::LoadInst>(at) && is_simple_access(*at) && is_other_place(*at)))
            return false;
    }
    return true;
}

unsigned elements_of_each(llvm::ArrayRef<llvm::Value*> values, unsigned lanes) {
    return llvm::cast<llvm::FixedVectorType>(values.front()->getType())->getNumElements() / lanes;
}

// Of n = 2 or 4 vectors, the parts of n elements are the rows of a square: the rows of the results are its columns. No element leaves its part of the
// register, and processors are quick at such shuffles.
llvm::SmallVector<llvm::Value*, lane_structure_max> exchanged(llvm::IRBuilder<>& builder,
                                                              llvm::ArrayRef<llvm::Value*> vectors) {
    const auto elements = static_cast<unsigned>(vectors.size());
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(vectors.front()->getType())->getNumElements();
    const auto exchange = [&](llvm::Value* low, llvm::Value* high, unsigned begin, unsigned size) {
        llvm::SmallVector<int> places;
        for (unsigned structure = 0; structure < lanes; structure += elements)
            for (unsigned place = 0; place < elements; ++place) {
                const unsigned from = structure + begin + place / (2 * size) * size + place % size;
                places.push_back(static_cast<int>(place / size % 2 == 0 ? from : lanes + from));
            }
        return builder.CreateShuffleVector(low, high, places);
    };
    if (elements == 2)
        return {exchange(vectors[0], vectors[1], 0, 1), exchange(vectors[0], vectors[1], 1, 1)};
    llvm::SmallVector<llvm::Value*, lane_structure_max> halves;
    for (const unsigned pair : {0U, 2U})
        for (const unsigned begin : {0U, 2U})
            halves.push_back(exchange(vectors[pair], vectors[pair + 1], begin, 1));
    return {exchange(halves[0], halves[2], 0, 2), exchange(halves[0], halves[2], 2, 2),
            exchange(halves[1], halves[3], 0, 2), exchange(halves[1], halves[3], 2, 2)};
}

}  // namespace

const BlockAccesses& LaneAccesses::block_of(llvm::BasicBlock& block) {
    std::unique_ptr<BlockAccesses>& known = blocks_[&block];
    if (!known)
        known = std::make_unique<BlockAccesses>(block);
    return *known;
}

void LaneAccesses::find_group(llvm::Instruction& instruction, LaneAccess& access, int64_t element_bytes) {
    const BlockAccesses& block = block_of(*instruction.getParent());
    const int64_t offset = place_of(instruction).offset;
    const llvm::ArrayRef<PlacedAccess> all = block.neighbours_of(instruction);
    // The first access is taken as the beginning of a structure.
    const int64_t bytes = access.step * element_bytes;
    const int64_t begin = all.front().offset + (offset - all.front().offset) / bytes * bytes;
    const auto by_offset = [](const PlacedAccess& placed, int64_t before) { return placed.offset < before; };
    const PlacedAccess* first = std::lower_bound(all.begin(), all.end(), begin, by_offset);
    const PlacedAccess* end = std::lower_bound(first, all.end(), begin + bytes, by_offset);
    const bool is_store = llvm::isa<llvm::StoreInst>(instruction);
    llvm::SmallVector<llvm::Instruction*, 4> group;
    size_t earliest = SIZE_MAX, latest = 0;
    for (const PlacedAccess* member = first; member != end; ++member) {
        if ((member->offset - first->offset) % element_bytes != 0)
            return;
        if (is_store && member != first && member->offset == member[-1].offset)
            return;  // two stores to one place
        const size_t number = block.number_of(*member->access);
        earliest = std::min(earliest, number);
        latest = std::max(latest, number);
        group.push_back(member->access);
    }
    // A group's stores are emitted at the position of the last one.
    constexpr size_t between_max = 16;
    if (const size_t others = is_store ? latest - earliest + 1 - group.size() : 0;
        others > between_max || (others > 0 && !may_wait_for_last(group)))
        return;
    access.member = (offset - first->offset) / element_bytes;
    access.span = (end[-1].offset - first->offset) / element_bytes;
    access.group = std::move(group);
}

// A row of the table is loaded as such; a row that is only likely would have to be checked.
const ConstantTable* LaneAccesses::table_of(llvm::Instruction& instruction) {
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (load == nullptr || permutes_ == Permutes::none)
        return nullptr;
    const auto [known, is_new] = tables_.try_emplace(load);
    if (!is_new)
        return known->second.get();
    std::optional<ConstantTable> table = constant_table_of(*load, permutes_);
    if (!table)
        return nullptr;
    if (const auto access = of(*load); access && access->is_certain)
        return nullptr;
    known->second = std::make_unique<ConstantTable>(std::move(*table));
    return known->second.get();
}

bool LaneAccesses::has_gather(llvm::Type& element, llvm::Align align) const {
    auto* const type = of_lanes(element, lanes_);
    return target_.isLegalMaskedGather(type, align) && !target_.forceScalarizeMaskedGather(type, align);
}

// On a Zen 4, with what is loaded in the first cache, 16 words take 2.3 ns one by one and 4.9 by a gather, 8 of 64 bits 1.1 and 2.7; stores of 16 words 4.4 and
// 6.4, of 8 of 64 bits 2.2 and 3.3.
bool are_quicker_one_by_one(Gathers gathers, const llvm::Type& element, const LaneShape& address) {
    return gathers == Gathers::quick_for_all && !element.isVectorTy() && address.is_strided();
}

bool LaneAccesses::are_bytes_of_word(llvm::Type& element, size_t elements) const {
    constexpr unsigned bits = 8, word_bytes = 4;
    return elements == 3 && element.isIntegerTy(bits) && lanes_ >= lane_structure_max &&
           has_gather(*llvm::Type::getInt32Ty(element.getContext()), llvm::Align(word_bytes));
}

bool LaneAccesses::is_stored_apart(llvm::StoreInst& store) {
    const std::optional<LaneAccess> access = of(store);
    return !access || (access->step > 1 && !access->is_whole_group());
}

llvm::SmallVector<llvm::StoreInst*, 8> LaneAccesses::number_with(llvm::StoreInst& store, Stored lanes) {
    constexpr uint64_t scattered_bytes_max = 8;
    auto number = block_of(*store.getParent()).number_with(store);
    const uint64_t bytes = store.getDataLayout().getTypeStoreSize(store.getValueOperand()->getType()).getFixedValue();
    if (number.size() * bytes > scattered_bytes_max && (lanes == Stored::some_lanes || lanes_ < lane_structure_max)) {
        const size_t half = number.size() / 2;
        const bool is_in_first = llvm::is_contained(llvm::ArrayRef(number).take_front(half), &store);
        number = {number.begin() + (is_in_first ? 0 : half), number.end() - (is_in_first ? half : 0)};
    }
    const auto is_in_row = [&](llvm::StoreInst& one) {
        const std::optional<LaneAccess> access = of(one);
        return access && access->gaps_take_mask;
    };
    const bool is_apart =
        llvm::all_of(number, [&](llvm::StoreInst* one) { return is_stored_apart(*one) && !is_in_row(*one); });
    return is_apart ? number : llvm::SmallVector<llvm::StoreInst*, 8>{&store};
}

bool LaneAccesses::has_masked_form(const llvm::Instruction& access) const {
    llvm::Type* type = of_lanes(*llvm::getLoadStoreType(&access), lanes_);
    const llvm::Align align = llvm::getLoadStoreAlignment(&access);
    const unsigned space = llvm::getLoadStoreAddressSpace(&access);
    return llvm::isa<llvm::LoadInst>(access) ? target_.isLegalMaskedLoad(type, align, space)
                                             : target_.isLegalMaskedStore(type, align, space);
}

// Whether lanes whose structures are side by side access them in the order of memory under a mask. Only with mask registers: the mask of the elements
// would fill as many registers as the elements.
bool LaneAccesses::has_masked_form_of_structures(const llvm::Instruction& instruction, const LaneAccess& access) const {
    if (!access.is_certain || access.step > lane_structure_max ||
        (llvm::isa<llvm::StoreInst>(instruction) && !access.is_whole_group()) ||
        (!access.is_one_access() && llvm::getLoadStoreType(&instruction)->isVectorTy()))
        return false;
    llvm::Type* type = of_lanes(*llvm::getLoadStoreType(&instruction), lanes_ * static_cast<unsigned>(access.step));
    return has_masked_form(instruction) &&
           target_.isLegalMaskedCompressStore(type, llvm::getLoadStoreAlignment(&instruction));
}

// Masked stores are slow on some processors without mask registers. A processor with mask registers also has a store that packs the active
// lanes (compress store), which is how it is recognized.
bool LaneAccesses::is_slow_under_mask(const llvm::Instruction& access) const {
    llvm::Type* type = of_lanes(*llvm::getLoadStoreType(&access), lanes_);
    return llvm::isa<llvm::StoreInst>(access) &&
           !target_.isLegalMaskedCompressStore(type, llvm::getLoadStoreAlignment(&access));
}

// Whether a store with gaps is one of rows under masks. A scatter of all lanes takes as long as about four rows. With three rows the masks of lanes would
// have to be spread by many instructions.
bool LaneAccesses::has_masked_form_with_gaps(const llvm::Instruction& instruction, const LaneAccess& access) const {
    constexpr int64_t rows_max = 4;
    return llvm::isa<llvm::StoreInst>(instruction) && !llvm::getLoadStoreType(&instruction)->isVectorTy() &&
           access.step <= rows_max && llvm::isPowerOf2_64(static_cast<uint64_t>(access.step)) &&
           !access.is_slow_under_mask && has_masked_form(instruction);
}

std::optional<LaneAccess> LaneAccesses::of(llvm::Instruction& instruction) {
    const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
    llvm::Type* type = llvm::getLoadStoreType(&instruction);
    const llvm::DataLayout& layout = instruction.getDataLayout();
    if (!is_simple_access(instruction) || !layout.typeSizeEqualsStoreSize(type) ||
        layout.getTypeStoreSize(type) != layout.getTypeAllocSize(type))
        return std::nullopt;
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue());
    LaneAccess access;
    LaneShape shape = shapes_.of(address);
    if (shapes_.privates().word_of(instruction) != 0) {  // the words of all lanes are a row
        access.step = 1;
        access.stride = shape.stride;
        access.is_certain = access.takes_mask = true;
        access.group = {&instruction};
        return shape.is_strided() ? std::optional(access) : std::nullopt;
    }
    access.is_certain = shape.is_strided();
    if (!access.is_certain)
        shape = guesses_.of(address);
    if (!shape.is_strided() || shape.stride == 0 || shape.stride % bytes != 0)
        return std::nullopt;
    access.step = shape.stride / bytes;
    access.stride = shape.stride;
    access.group = {&instruction};
    if (access.step < -1 || access.step > std::min<int64_t>(lane_step_max, lanes_))
        return std::nullopt;
    access.takes_mask = std::abs(access.step) == 1 && has_masked_form(instruction);
    access.is_slow_under_mask = is_slow_under_mask(instruction);
    if (access.step > 1) {
        find_group(instruction, access, bytes);
        access.row_takes_mask = has_masked_form_of_structures(instruction, access);
        access.gaps_take_mask = !access.is_whole_group() && has_masked_form_with_gaps(instruction, access);
    }
    return access;
}

int64_t elements_between(const llvm::Instruction& from, const llvm::Instruction& to) {
    const llvm::DataLayout& layout = from.getDataLayout();
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(llvm::getLoadStoreType(&from)).getFixedValue());
    return (place_of(to).offset - place_of(from).offset) / bytes;
}

llvm::Value* load_structures_under_mask(llvm::IRBuilder<>& builder, llvm::LoadInst& load, const LaneAccess& access,
                                        llvm::Value* first, unsigned lanes, llvm::Value* mask) {
    llvm::Type* const element = load.getType();
    const llvm::Align align = commonAlignment(load.getAlign(), load.getDataLayout().getTypeStoreSize(element));
    const auto step = static_cast<unsigned>(access.step);
    llvm::Value* const begin =
        builder.CreateGEP(element, first, builder.getInt64(static_cast<uint64_t>(-access.member)));
    // Inactive lanes have no value, as behind a gather.
    if (access.is_one_access())
        return builder.CreateMaskedLoad(of_lanes(*element, lanes * step), begin, align,
                                        of_structures(builder, mask, access.step * elements_of_lane(*element), lanes));
    llvm::SmallVector<llvm::Value*, lane_step_max> parts;
    for (unsigned part = 0; part < step; ++part)
        parts.push_back(builder.CreateMaskedLoad(
            of_lanes(*element, lanes), builder.CreateGEP(element, begin, builder.getInt64(uint64_t{part} * lanes)),
            align, of_part(builder, mask, access, lanes, part * lanes)));
    return llvm::concatenateVectors(builder, parts);
}

llvm::Value* load_with_step(llvm::IRBuilder<>& builder, llvm::LoadInst& load, const LaneAccess& access,
                            llvm::Value* first, unsigned lanes, llvm::Value* structures) {
    llvm::Type* element = load.getType();
    const int64_t width = lanes;
    llvm::Type* type = of_lanes(*element, lanes);
    const llvm::Align align = commonAlignment(load.getAlign(), load.getDataLayout().getTypeStoreSize(element));
    const auto load_from = [&](int64_t index) {
        llvm::Value* address = builder.CreateGEP(element, first, builder.getInt64(static_cast<uint64_t>(index)));
        return builder.CreateAlignedLoad(type, address, align);
    };
    if (access.step == 1)
        return load_from(0);
    if (access.step == -1)
        return reversed(builder, load_from(1 - width), lanes);
    llvm::SmallVector<int, 16> places;
    for (int64_t lane = 0; lane < width; ++lane)
        places.push_back(static_cast<int>(access.member + lane * access.step));
    const auto moved = [&](llvm::Value* from) {
        return builder.CreateShuffleVector(from, of_elements(places, elements_of_lane(*element)));
    };
    if (structures != nullptr)
        return moved(structures);
    // LLVM's targets make the best code of one load and one shuffle.
    if (access.span + 1 == access.step) {
        type = of_lanes(*element, lanes * static_cast<unsigned>(access.step));
        llvm::Value* begin = builder.CreateGEP(element, first, builder.getInt64(static_cast<uint64_t>(-access.member)));
        return moved(builder.CreateAlignedLoad(type, begin, align));
    }
    // The last part is moved down, so that it ends with the last element that is accessed.
    const int64_t last = std::min((access.step - 1) * width, (width - 1) * access.step + access.span + 1 - width);
    llvm::SmallVector<llvm::Value*, lane_step_max> parts;
    for (int64_t part = 0; part < access.step; ++part)
        parts.push_back(load_from((part + 1 < access.step ? part * width : last) - access.member));
    for (int& place : places)
        if (place >= (access.step - 1) * width)
            place += static_cast<int>((access.step - 1) * width - last);
    return moved(llvm::concatenateVectors(builder, parts));
}

// The first vector has the structures of the lanes 0, n, 2n, ..., the next one those of the lanes 1, n + 1, ... Then the vectors exchange elements.
llvm::SmallVector<llvm::Value*, lane_structure_max> transposed(llvm::IRBuilder<>& builder,
                                                               llvm::ArrayRef<llvm::Value*> structures) {
    const unsigned elements = llvm::cast<llvm::FixedVectorType>(structures.front()->getType())->getNumElements();
    llvm::SmallVector<llvm::Value*, lane_structure_max> vectors;
    for (unsigned first = 0; first < elements; ++first) {
        llvm::SmallVector<llvm::Value*> every_nth;
        for (size_t lane = first; lane < structures.size(); lane += elements)
            every_nth.push_back(structures[lane]);
        vectors.push_back(llvm::concatenateVectors(builder, every_nth));
    }
    return exchanged(builder, vectors);
}

llvm::SmallVector<llvm::Value*> structures_of(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values,
                                              unsigned lanes) {
    const auto elements = static_cast<unsigned>(values.size());
    const auto vectors = exchanged(builder, values);
    llvm::SmallVector<llvm::Value*> structures;
    for (unsigned lane = 0; lane < lanes; ++lane)
        structures.push_back(builder.CreateShuffleVector(
            vectors[lane % elements], llvm::createSequentialMask(lane / elements * elements, elements, 0)));
    return structures;
}

void store_group(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values, llvm::Value* first, llvm::Align align,
                 const LaneAccess& access, unsigned lanes, llvm::Value* mask) {
    const unsigned elements = elements_of_each(values, lanes);
    const auto step = static_cast<unsigned>(values.size());
    llvm::SmallVector<int, 64> sources;
    for (unsigned place = 0; place < step * lanes; ++place)
        sources.push_back(static_cast<int>(place % step * lanes + place / step));
    llvm::Value* all = llvm::concatenateVectors(builder, values);
    if (mask != nullptr && !access.is_one_access()) {
        llvm::Type* const element = values.front()->getType()->getScalarType();
        for (unsigned part = 0; part < step; ++part)
            builder.CreateMaskedStore(
                builder.CreateShuffleVector(all, llvm::ArrayRef(sources).slice(size_t{part} * lanes, lanes)),
                builder.CreateGEP(element, first, builder.getInt64(uint64_t{part} * lanes)), align,
                of_part(builder, mask, access, lanes, part * lanes));
        return;
    }
    llvm::Value* const row = builder.CreateShuffleVector(all, of_elements(sources, elements));
    if (mask == nullptr)
        builder.CreateAlignedStore(row, first, align);
    else
        builder.CreateMaskedStore(row, first, align, of_structures(builder, mask, int64_t{step} * elements, lanes));
}

void store_with_gaps(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values, llvm::ArrayRef<int64_t> places,
                     llvm::Value* first, llvm::Align align, int64_t step, unsigned lanes, llvm::Value* mask) {
    llvm::SmallVector<int> sources, lane_of_place;
    llvm::SmallVector<llvm::Constant*> is_element;
    for (int64_t place = 0; place < lanes * step; ++place) {
        const auto* const member = llvm::find(places, place % step);
        const auto lane = static_cast<int>(place / step);
        sources.push_back(member == places.end()
                              ? llvm::PoisonMaskElem
                              : static_cast<int>(member - places.begin()) * static_cast<int>(lanes) + lane);
        lane_of_place.push_back(lane);
        is_element.push_back(builder.getInt1(member != places.end()));
    }
    llvm::Value* stored = llvm::ConstantVector::get(is_element);
    if (mask != nullptr)
        stored = builder.CreateAnd(builder.CreateShuffleVector(mask, lane_of_place), stored);
    llvm::Value* const row = builder.CreateShuffleVector(llvm::concatenateVectors(builder, values), sources);
    builder.CreateMaskedStore(row, first, align, stored);
}

llvm::Value* reversed(llvm::IRBuilder<>& builder, llvm::Value* values, unsigned lanes) {
    llvm::SmallVector<int> sources;
    for (unsigned lane = lanes; lane-- > 0;)
        sources.push_back(static_cast<int>(lane));
    return builder.CreateShuffleVector(values, of_elements(sources, elements_of_each(values, lanes)));
}

}  // namespace polder::compiler::workgroup
