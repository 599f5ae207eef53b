// An index chooses by its lowest bits, so that entries are placed by theirs: a table whose indices are -8 to 7 begins with the entry for 0.
// Tables of bytes and shorts are widened to words where they fit, because the indices are words for the most part.
#include "constant_tables.h"

#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned byte_bits = 8, word_bits = 32, narrow_register_bits = 256, wide_register_bits = 512;

// constant + scale * index, in bytes, from the beginning of a constant variable.
struct TablePlace {
    const llvm::GlobalVariable* table = nullptr;
    int64_t constant = 0, scale = 0;
    llvm::Value* index = nullptr;
};

std::optional<TablePlace> table_place_of(const llvm::LoadInst& load) {
    const llvm::DataLayout& layout = load.getDataLayout();
    const llvm::Value* from = load.getPointerOperand();
    const unsigned bits = layout.getIndexTypeSizeInBits(from->getType());
    llvm::SmallMapVector<llvm::Value*, llvm::APInt, 4> scales;
    llvm::APInt constant(bits, 0);
    for (const llvm::Value* before = nullptr; from != before;) {
        before = from;
        from = from->stripPointerCasts();
        if (const auto* place = llvm::dyn_cast<llvm::GEPOperator>(from)) {
            if (layout.getIndexTypeSizeInBits(place->getType()) != bits ||
                !place->collectOffset(layout, bits, scales, constant))
                return std::nullopt;
            from = place->getPointerOperand();
        }
    }
    const auto* const table = llvm::dyn_cast<llvm::GlobalVariable>(from);
    if (table == nullptr || !table->isConstant() || !table->hasDefinitiveInitializer() || scales.size() != 1 ||
        !scales.front().second.isStrictlyPositive())
        return std::nullopt;
    return TablePlace{table, constant.getSExtValue(), scales.front().second.getSExtValue(), scales.front().first};
}

// The bits of an entry in a register, for `count` elements of `bits` bits; 0: they do not fit.
unsigned entry_bits_of(unsigned bits, uint64_t count, Permutes permutes) {
    const auto fits = [&](unsigned entry_bits) {
        constexpr uint64_t registers_max = 4, narrow_registers_max = 2;
        return permutes == Permutes::words ? count <= narrow_registers_max * (narrow_register_bits / entry_bits)
                                           : count <= registers_max * (wide_register_bits / entry_bits);
    };
    if (bits <= word_bits && fits(word_bits))
        return word_bits;
    return permutes_wide_registers(permutes, bits) && fits(bits) ? bits : 0;
}

}  // namespace

unsigned ConstantTable::instructions(unsigned lanes) const {
    const unsigned for_index = shift == 0 ? 1 : 2;
    const auto registers = static_cast<unsigned>(entries.size()) / register_entries;
    return llvm::divideCeil(lanes, register_entries) *
           (for_index + permutations_for(registers, permutes != Permutes::words));
}

std::optional<ConstantTable> constant_table_of(const llvm::LoadInst& load, Permutes permutes) {
    const llvm::Type& type = *load.getType();
    if (permutes == Permutes::none || !load.isSimple() || !(type.isIntegerTy() || type.isFloatingPointTy()))
        return std::nullopt;
    const unsigned bits = type.getScalarSizeInBits();
    constexpr unsigned largest_bits = 64;
    if (bits < byte_bits || bits > largest_bits || !llvm::isPowerOf2_32(bits))
        return std::nullopt;
    const std::optional<TablePlace> place = table_place_of(load);
    if (!place)
        return std::nullopt;
    const int64_t bytes = bits / byte_bits;
    ConstantTable table{.index = place->index, .permutes = permutes};
    int64_t stride = place->scale;
    if (stride < bytes) {
        // The index counts bytes, or elements of another size. It is a multiple of this element, or the load would not be aligned.
        if (!llvm::isPowerOf2_64(static_cast<uint64_t>(stride)) || place->constant % bytes != 0 ||
            load.getAlign().value() < static_cast<uint64_t>(bytes))
            return std::nullopt;
        table.shift = llvm::Log2_64(static_cast<uint64_t>(bytes / stride));
        stride = bytes;
    }
    const llvm::DataLayout& layout = load.getDataLayout();
    const auto size = static_cast<int64_t>(layout.getTypeAllocSize(place->table->getValueType()).getFixedValue());
    const int64_t last = llvm::divideFloorSigned(size - bytes - place->constant, stride);
    const int64_t first = llvm::divideCeilSigned(-place->constant, stride);
    if (last < first)
        return std::nullopt;
    const auto count = static_cast<uint64_t>(last - first + 1);
    table.entry_bits = entry_bits_of(bits, count, permutes);
    if (table.entry_bits == 0)
        return std::nullopt;
    table.register_entries =
        (permutes == Permutes::words ? narrow_register_bits : wide_register_bits) / table.entry_bits;
    llvm::LLVMContext& context = load.getContext();
    auto* const entry = llvm::IntegerType::get(context, table.entry_bits);
    uint64_t places = table.register_entries;
    while (places < count)
        places *= 2;
    table.entries.assign(places, llvm::Constant::getNullValue(entry));
    for (int64_t i = first; i <= last; ++i) {
        const llvm::APInt offset(layout.getIndexTypeSizeInBits(place->table->getType()),
                                 static_cast<uint64_t>(place->constant + i * stride), true);
        llvm::Constant* const value =
            llvm::ConstantFoldLoadFromConst(const_cast<llvm::Constant*>(place->table->getInitializer()),
                                            llvm::IntegerType::get(context, bits), offset, layout);
        if (const auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(value))
            table.entries[static_cast<uint64_t>(i) % places] =
                llvm::ConstantInt::get(entry, number->getValue().zext(table.entry_bits));
        else if (value == nullptr || !llvm::isa<llvm::UndefValue>(value))
            return std::nullopt;
    }
    return table;
}

llvm::Value* look_up(llvm::IRBuilder<>& builder, const ConstantTable& table, llvm::Value& indices, llvm::Type& type) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(indices.getType())->getNumElements();
    const auto of_lanes = [&](llvm::Type* element) { return llvm::FixedVectorType::get(element, lanes); };
    llvm::Value* all = &indices;
    // A narrow index is extended with its sign first, as in an address.
    auto* const wanted = of_lanes(builder.getIntNTy(table.entry_bits));
    if (all->getType()->getScalarSizeInBits() < table.entry_bits)
        all = builder.CreateSExt(all, wanted);
    if (table.shift != 0)
        all = builder.CreateLShr(all, table.shift);
    all = builder.CreateTrunc(all, wanted);
    llvm::SmallVector<llvm::Value*, 4> registers;
    for (size_t first = 0; first < table.entries.size(); first += table.register_entries)
        registers.push_back(
            llvm::ConstantVector::get(llvm::ArrayRef(table.entries).slice(first, table.register_entries)));
    llvm::Value* const result = builder.CreateTrunc(chosen_elements(builder, registers, *all),
                                                    of_lanes(builder.getIntNTy(type.getScalarSizeInBits())));
    return builder.CreateBitCast(result, of_lanes(&type));
}

}  // namespace polder::compiler::workgroup
