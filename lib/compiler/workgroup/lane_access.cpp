#include "lane_access.h"

#include <algorithm>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

// An address without its constant part.
struct Place {
    const llvm::Value* base = nullptr;
    int64_t offset = 0;
};

Place place_of(const llvm::Instruction& access, const llvm::DataLayout& layout) {
    const llvm::Value* address = llvm::getLoadStorePointerOperand(&access);
    llvm::APInt offset(layout.getIndexTypeSizeInBits(address->getType()), 0);
    const llvm::Value* base = address->stripAndAccumulateConstantOffsets(layout, offset, true);
    return {base, offset.getSExtValue()};
}

bool is_simple(const llvm::Instruction& access) {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&access))
        return load->isSimple();
    const auto* store = llvm::dyn_cast<llvm::StoreInst>(&access);
    return store != nullptr && store->isSimple();
}

// Those of `access`'s block to the same structures of `bytes` bytes, by place.
llvm::SmallVector<std::pair<int64_t, llvm::Instruction*>, 8> accesses_to_structure(llvm::Instruction& access,
                                                                                   int64_t bytes) {
    const llvm::DataLayout& layout = access.getDataLayout();
    const Place place = place_of(access, layout);
    llvm::SmallVector<std::pair<int64_t, llvm::Instruction*>, 8> all;
    for (llvm::Instruction& other : *access.getParent()) {
        if (other.getOpcode() != access.getOpcode() || !is_simple(other) ||
            llvm::getLoadStoreType(&other) != llvm::getLoadStoreType(&access))
            continue;
        if (const Place its = place_of(other, layout); its.base == place.base)
            all.emplace_back(its.offset, &other);
    }
    llvm::sort(all, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : a.second->comesBefore(b.second);
    });
    // Structures begin where the first access is.
    const int64_t begin = all.front().first + (place.offset - all.front().first) / bytes * bytes;
    llvm::erase_if(all, [&](const auto& other) { return other.first < begin || other.first >= begin + bytes; });
    return all;
}

// No other access to memory comes between them, so that they can be done at once, where the last one is.
bool are_adjacent(llvm::ArrayRef<llvm::Instruction*> stores) {
    size_t seen = 0;
    for (const llvm::Instruction& instruction : *stores.front()->getParent()) {
        if (llvm::is_contained(stores, &instruction))
            ++seen;
        else if (seen > 0 && seen < stores.size() && instruction.mayReadOrWriteMemory())
            return false;
    }
    return true;
}

void find_group(llvm::Instruction& instruction, LaneAccess& access, int64_t element_bytes) {
    const auto all = accesses_to_structure(instruction, access.step * element_bytes);
    const int64_t begin = all.front().first;
    const bool are_elements =
        llvm::all_of(all, [&](const auto& other) { return (other.first - begin) % element_bytes == 0; });
    llvm::SmallVector<llvm::Instruction*, 4> group;
    for (const auto& [offset, other] : all) {
        if (are_elements && !group.empty() && llvm::isa<llvm::StoreInst>(other) &&
            place_of(*group.back(), instruction.getDataLayout()).offset == offset)
            return;  // two stores to one place
        group.push_back(other);
    }
    if (!are_elements || (llvm::isa<llvm::StoreInst>(instruction) && !are_adjacent(group)))
        return;
    access.member = (place_of(instruction, instruction.getDataLayout()).offset - begin) / element_bytes;
    access.span = (all.back().first - begin) / element_bytes;
    access.group = std::move(group);
}

} // namespace

std::optional<LaneAccess> access_of(llvm::Instruction& instruction, const LaneShapes& shapes, const LaneShapes& guesses,
                                    unsigned lanes) {
    const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
    llvm::Type* type = llvm::getLoadStoreType(&instruction);
    const llvm::DataLayout& layout = instruction.getDataLayout();
    if (!is_simple(instruction) || !layout.typeSizeEqualsStoreSize(type) ||
        layout.getTypeStoreSize(type) != layout.getTypeAllocSize(type))
        return std::nullopt;
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue());
    LaneAccess access;
    LaneShape shape = shapes.of(address);
    access.is_certain = shape.is_strided();
    if (!access.is_certain)
        shape = guesses.of(address);
    if (!shape.is_strided() || shape.stride == 0 || shape.stride % bytes != 0)
        return std::nullopt;
    access.step = shape.stride / bytes;
    access.group = {&instruction};
    if (access.step < -1 || access.step > std::min<int64_t>(lane_step_max, lanes))
        return std::nullopt;
    if (access.step > 1)
        find_group(instruction, access, bytes);
    return access;
}

int64_t elements_between(const llvm::Instruction& from, const llvm::Instruction& to) {
    const llvm::DataLayout& layout = from.getDataLayout();
    const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(llvm::getLoadStoreType(&from)).getFixedValue());
    return (place_of(to, layout).offset - place_of(from, layout).offset) / bytes;
}

llvm::Value* load_with_step(llvm::IRBuilder<>& builder, llvm::LoadInst& load, const LaneAccess& access,
                            llvm::Value* first, unsigned lanes) {
    llvm::Type* element = load.getType();
    const int64_t width = lanes;
    llvm::Type* type = llvm::FixedVectorType::get(element, lanes);
    const llvm::Align align = commonAlignment(load.getAlign(), load.getDataLayout().getTypeStoreSize(element));
    const auto load_from = [&](int64_t index) {
        llvm::Value* address = builder.CreateGEP(element, first, builder.getInt64(static_cast<uint64_t>(index)));
        return builder.CreateAlignedLoad(type, address, align);
    };
    if (access.step == 1)
        return load_from(0);
    if (access.step == -1)
        return builder.CreateVectorReverse(load_from(1 - width));
    // The last vector ends where the last place does.
    const int64_t last = std::min((access.step - 1) * width, (width - 1) * access.step + access.span + 1 - width);
    llvm::SmallVector<llvm::Value*, lane_step_max> parts;
    for (int64_t part = 0; part < access.step; ++part)
        parts.push_back(load_from((part + 1 < access.step ? part * width : last) - access.member));
    llvm::SmallVector<int, 16> places;
    for (int64_t lane = 0; lane < width; ++lane) {
        const int64_t place = access.member + lane * access.step;
        const bool is_in_last = place >= (access.step - 1) * width;
        places.push_back(static_cast<int>(is_in_last ? place - last + (access.step - 1) * width : place));
    }
    return builder.CreateShuffleVector(llvm::concatenateVectors(builder, parts), places);
}

void store_group(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values, llvm::Value* first,
                 llvm::Align align) {
    auto* type = llvm::cast<llvm::FixedVectorType>(values.front()->getType());
    const unsigned lanes = type->getNumElements();
    const auto step = static_cast<unsigned>(values.size());
    llvm::Value* all = llvm::concatenateVectors(builder, values);
    for (unsigned part = 0; part < step; ++part) {
        llvm::SmallVector<int, 16> sources;
        for (unsigned place = part * lanes; place < (part + 1) * lanes; ++place)
            sources.push_back(static_cast<int>(place % step * lanes + place / step));
        llvm::Value* address = builder.CreateGEP(type->getElementType(), first, builder.getInt64(part * lanes));
        builder.CreateAlignedStore(builder.CreateShuffleVector(all, sources), address, align);
    }
}

} // namespace polder::compiler::workgroup
