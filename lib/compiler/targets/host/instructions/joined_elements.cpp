#include "joined_elements.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/Alignment.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler {
namespace {

// BinaryOpsEnd for another instruction.
llvm::Instruction::BinaryOps joining_operation(const llvm::IntrinsicInst& joined) {
    switch (joined.getIntrinsicID()) {
    case llvm::Intrinsic::vector_reduce_or: return llvm::Instruction::Or;
    case llvm::Intrinsic::vector_reduce_and: return llvm::Instruction::And;
    default: return llvm::Instruction::BinaryOpsEnd;
    }
}

// Of whole bytes, so that a vector's elements can be loaded one by one.
bool joins_three(const llvm::IntrinsicInst& joined) {
    if (joining_operation(joined) == llvm::Instruction::BinaryOpsEnd)
        return false;
    const auto* const type = llvm::cast<llvm::VectorType>(joined.getArgOperand(0)->getType());
    const llvm::DataLayout& layout = joined.getDataLayout();
    return type->getElementCount() == llvm::ElementCount::getFixed(3) &&
           layout.typeSizeEqualsStoreSize(type->getElementType());
}

llvm::Value* loaded_element(llvm::LoadInst& load, unsigned place) {
    llvm::Type* const element = load.getType()->getScalarType();
    const llvm::DataLayout& layout = load.getDataLayout();
    const uint64_t offset = place * layout.getTypeAllocSize(element).getFixedValue();
    llvm::IRBuilder<> at(&load);
    llvm::Value* const address = at.CreateConstInBoundsGEP1_64(element, load.getPointerOperand(), place);
    llvm::LoadInst* const loaded =
        at.CreateAlignedLoad(element, address, llvm::commonAlignment(load.getAlign(), offset));
    loaded->setAAMetadata(load.getAAMetadata().adjustForAccess(offset, element, layout));
    return loaded;
}

// One element, before it was put into the vector where this is known.
llvm::Value* element_of(llvm::Value& vector, unsigned place, llvm::IRBuilder<>& at) {
    if (auto* const inserted = llvm::dyn_cast<llvm::InsertElementInst>(&vector)) {
        if (const auto* const where = llvm::dyn_cast<llvm::ConstantInt>(inserted->getOperand(2)))
            return where->equalsInt(place) ? inserted->getOperand(1) : element_of(*inserted->getOperand(0), place, at);
    } else if (auto* const shuffled = llvm::dyn_cast<llvm::ShuffleVectorInst>(&vector)) {
        const int from = shuffled->getMaskValue(place);
        const auto* const source = llvm::cast<llvm::FixedVectorType>(shuffled->getOperand(0)->getType());
        const unsigned count = source->getNumElements();
        if (from >= 0)
            return static_cast<unsigned>(from) < count
                       ? element_of(*shuffled->getOperand(0), static_cast<unsigned>(from), at)
                       : element_of(*shuffled->getOperand(1), static_cast<unsigned>(from) - count, at);
    } else if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&vector);
               load && load->isSimple() && load->hasOneUse()) {
        return loaded_element(*load, place);
    }
    return at.CreateExtractElement(&vector, place);
}

void join_as_numbers(llvm::IntrinsicInst& joined) {
    llvm::IRBuilder<> at(&joined);
    llvm::Value& vector = *joined.getArgOperand(0);
    const llvm::Instruction::BinaryOps operation = joining_operation(joined);
    llvm::Value* const first = at.CreateBinOp(operation, element_of(vector, 0, at), element_of(vector, 1, at));
    joined.replaceAllUsesWith(at.CreateBinOp(operation, first, element_of(vector, 2, at)));
    llvm::RecursivelyDeleteTriviallyDeadInstructions(&joined);
}

}  // namespace

void join_elements_as_numbers(llvm::Function& function) {
    llvm::SmallVector<llvm::IntrinsicInst*> found;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* const joined = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction); joined && joins_three(*joined))
            found.push_back(joined);
    for (llvm::IntrinsicInst* const joined : found)
        join_as_numbers(*joined);
}

}  // namespace polder::compiler
