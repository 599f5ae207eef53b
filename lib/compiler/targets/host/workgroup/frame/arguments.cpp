#include "arguments.h"

#include <algorithm>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Alignment.h>

namespace polder::compiler::workgroup {

namespace {

bool is_local_pointer(const llvm::Function& kernel, const llvm::Argument& argument) {
    const auto* pointer = llvm::dyn_cast<llvm::PointerType>(argument.getType());
    if (!pointer)
        return false;
    if (pointer->getAddressSpace() == local_address_space)
        return true;
    const llvm::MDNode* spaces = kernel.getMetadata("kernel_arg_addr_space");
    if (!spaces || argument.getArgNo() >= spaces->getNumOperands())
        return false;
    const auto* space = llvm::mdconst::dyn_extract<llvm::ConstantInt>(spaces->getOperand(argument.getArgNo()));
    return space && space->getZExtValue() == local_address_space;
}

}  // namespace

std::vector<ArgumentSlot> pack_arguments(const llvm::Function& kernel) {
    const llvm::DataLayout& layout = kernel.getParent()->getDataLayout();
    std::vector<ArgumentSlot> slots;
    uint64_t offset = 0;
    for (const llvm::Argument& argument : kernel.args()) {
        llvm::Type* type = argument.hasByValAttr() ? argument.getParamByValType() : argument.getType();
        llvm::Align alignment = layout.getABITypeAlign(type);
        if (argument.hasByValAttr())
            alignment = std::max(alignment, argument.getParamAlign().valueOrOne());
        offset = llvm::alignTo(offset, alignment);
        slots.push_back({offset, is_local_pointer(kernel, argument) ? ArgumentSlot::Kind::local_pointer
                                                                    : ArgumentSlot::Kind::value});
        offset += type->isPointerTy() ? 8 : layout.getTypeAllocSize(type).getFixedValue();
    }
    return slots;
}

}  // namespace polder::compiler::workgroup
