#include "table_costs.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned register_bits = 512, registers_max = 4, byte_bits = 8, lanes_min = 8;

// The largest index of a table whose address is the same for all lanes; nothing where the lanes' addresses have another form.
std::optional<llvm::APInt> largest_index(const llvm::LoadInst& load, const LaneShapes& shapes) {
    const auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(load.getPointerOperand());
    const llvm::DataLayout& layout = load.getDataLayout();
    if (address == nullptr || address->getNumIndices() != 1 || address->getType()->isVectorTy() ||
        !shapes.of(address->getPointerOperand()).is_uniform() ||
        layout.getTypeAllocSize(address->getSourceElementType()) != layout.getTypeAllocSize(load.getType()))
        return std::nullopt;
    return llvm::computeKnownBits(*address->idx_begin(), layout).getMaxValue();
}

}  // namespace

std::optional<double> cost_in_registers(const llvm::LoadInst& load, const LaneShapes& shapes, Permutes permutes,
                                        unsigned lanes) {
    constexpr double question = 2;
    const llvm::Type& type = *load.getType();
    const auto bits = static_cast<unsigned>(load.getDataLayout().getTypeSizeInBits(load.getType()).getFixedValue());
    if (!(type.isIntegerTy() || type.isFloatingPointTy()) || bits < byte_bits || !llvm::isPowerOf2_32(bits) ||
        !permutes_wide_registers(permutes, bits) || lanes < lanes_min || !load.isSimple())
        return std::nullopt;
    const auto last = largest_index(load, shapes);
    for (unsigned registers = 1; last && registers <= registers_max; registers *= 2)
        if (last->ult(uint64_t{registers} * register_bits / bits))
            return question + registers +
                   static_cast<double>(llvm::divideCeil(lanes * bits, register_bits)) *
                       (1 + permutations_for(registers, true));
    return std::nullopt;
}

}  // namespace polder::compiler::workgroup
