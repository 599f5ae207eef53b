// Promises are masks of numbers in the prologue. The mask of a row whose vectors may run several at once has a tag, by which it is found again.
#include "usual_launches.h"

#include "lowering.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <compiler/compiler.h>

#include <bit>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler::workgroup {

namespace {

constexpr uint64_t items_of_vector = usual_row_multiple(true), items_of_vectors = usual_row_multiple(false);
// Of the mask of a row that may become a multiple of more work-items.
constexpr const char* row_tag = "polder.row";

uint64_t mask_of_rows(uint64_t multiple) { return (usual_row_end - 1) & ~(multiple - 1); }

llvm::Instruction* tagged_row(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (instruction.hasMetadata(row_tag))
            return &instruction;
    return nullptr;
}

// `number` with the bits in `mask`, in place of the number from now on. Kernels compute with it, such as `y * get_local_size(0) + x`.
llvm::Instruction* masked(LoweredKernel& kernel, llvm::Value* number, uint64_t mask) {
    auto* const computed = number->use_empty() ? nullptr : llvm::dyn_cast<llvm::Instruction>(number);
    llvm::Instruction* const result = llvm::BinaryOperator::CreateAnd(
        number, llvm::ConstantInt::get(number->getType(), mask), "",
        computed != nullptr ? std::next(computed->getIterator()) : kernel.prologue->getTerminator()->getIterator());
    number->replaceUsesWithIf(result, [&](const llvm::Use& use) { return use.getUser() != result; });
    return result;
}

static_assert(usual_ids_end == 2 * usual_size_max);  // a global size after an offset

}  // namespace

bool has_usual_launches(const llvm::Function& function) { return function.hasFnAttribute(usual_launches_attribute); }

void promise_whole_rows(LoweredKernel& kernel) {
    llvm::Function& function = *kernel.function;
    if (!has_usual_launches(function))
        return;
    llvm::Value*& row = kernel.actual_size[kernel.order[0]];
    llvm::Instruction* const mask = masked(kernel, row, mask_of_rows(items_of_vector));
    mask->setName("row");
    const auto has_ids = [&](unsigned dimension) { return has_local_id(*function.getParent(), dimension); };
    const bool are_vectors = function.getFnAttribute(usual_launches_attribute).getValueAsString() == of_whole_vectors;
    if (!are_vectors && !has_ids(kernel.order[1]) && !has_ids(kernel.order[2]))
        mask->setMetadata(row_tag, llvm::MDNode::get(function.getContext(), {}));
    row = mask;
}

void promise_first_ids(LoweredKernel& kernel) {
    if (llvm::Value* const first = kernel.first_id[kernel.order[0]]; first != nullptr && !first->use_empty())
        masked(kernel, first, (usual_ids_end - 1) & ~(items_of_vector - 1));
}

void promise_several_vectors(llvm::Function& function) {
    if (llvm::Instruction* const row = has_usual_launches(function) ? tagged_row(function) : nullptr)
        row->setOperand(1, llvm::ConstantInt::get(row->getType(), mask_of_rows(items_of_vectors)));
}

uint64_t row_multiple(llvm::Function& work_group_function) {
    if (!has_usual_launches(work_group_function))
        return 1;
    const llvm::Instruction* const row = tagged_row(work_group_function);
    const auto* const mask = row != nullptr ? llvm::dyn_cast<llvm::ConstantInt>(row->getOperand(1)) : nullptr;
    return mask != nullptr && mask->getZExtValue() == mask_of_rows(items_of_vectors) ? items_of_vectors
                                                                                     : items_of_vector;
}

bool is_multiple(const llvm::Value& count, unsigned lanes) {
    if (const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(&count))
        return constant->getZExtValue() % lanes == 0;
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&count);
    return instruction != nullptr &&
           llvm::computeKnownBits(&count, instruction->getDataLayout()).countMinTrailingZeros() >=
               static_cast<unsigned>(std::countr_zero(lanes));
}

void remove_loops_without_items(llvm::Function& function) {
    if (!has_usual_launches(function))
        return;
    for (llvm::BasicBlock& block : function)
        llvm::ConstantFoldTerminator(&block);
    llvm::removeUnreachableBlocks(function);
}

}  // namespace polder::compiler::workgroup
