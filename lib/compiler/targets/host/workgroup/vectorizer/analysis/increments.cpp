// An argument is recognised by the block of arguments from which it is loaded, an index by what its users add to it. LaneShapes::incremented gives the
// product the shape of the id; the vector loop asks whether the arguments are 1 (assumed_one).
#include "increments.h"

#include "lane_shape.h"
#include "targets/host/workgroup/frame/abi.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

const llvm::Value* without_casts(const llvm::Value* value) {
    while (const auto* const cast = llvm::dyn_cast<llvm::CastInst>(value))
        value = cast->getOperand(0);
    return value;
}

// Of the kernel: they are loaded from the block of all arguments.
bool is_number_argument(const llvm::Value& value) {
    const auto* const load = llvm::dyn_cast<llvm::LoadInst>(without_casts(&value));
    if (load == nullptr || !load->getType()->isIntegerTy())
        return false;
    const auto* const parameter = llvm::dyn_cast<llvm::Argument>(llvm::getUnderlyingObject(load->getPointerOperand()));
    return parameter && parameter->getArgNo() == abi::args;
}

bool is_common(const llvm::Value& number) { return llvm::isa<llvm::Constant>(number) || is_number_argument(number); }

// A buffer, or a place in it that arguments and constants choose.
bool is_common_address(const llvm::Value& address) {
    if (const auto* const place = llvm::dyn_cast<llvm::GetElementPtrInst>(&address))
        return is_common_address(*place->getPointerOperand()) &&
               llvm::all_of(place->indices(), [](const llvm::Use& index) { return is_common(*index); });
    return llvm::isa<llvm::LoadInst, llvm::Argument>(address);
}

// Whether nothing else than arguments is added to the address. Where constants are, the argument is the size of a structure, such as a picture's number
// of channels.
bool is_only_accessed(const llvm::Value& address) {
    return llvm::all_of(address.users(), [&](const llvm::User* user) {
        const auto* const place = llvm::dyn_cast<llvm::GetElementPtrInst>(user);
        if (place == nullptr)
            return llvm::getLoadStorePointerOperand(user) == &address;
        return llvm::all_of(place->indices(), [](const llvm::Use& index) { return is_number_argument(*index); }) &&
               is_only_accessed(*place);
    });
}

bool is_index_alone(const llvm::Value& value, unsigned depth = 0);

// Whether the use adds only what all work-items share to the index `value`, or is the place that it chooses.
bool keeps_index(const llvm::Value& value, const llvm::User& user, unsigned depth) {
    if (const auto* const place = llvm::dyn_cast<llvm::GetElementPtrInst>(&user))
        return place->getNumIndices() == 1 && is_common_address(*place->getPointerOperand()) &&
               is_only_accessed(*place);
    if (llvm::isa<llvm::SExtInst, llvm::ZExtInst, llvm::TruncInst>(user))
        return is_index_alone(user, depth + 1);
    const auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(&user);
    if (operation == nullptr)
        return false;
    const llvm::Value& other = *operation->getOperand(operation->getOperand(0) == &value ? 1 : 0);
    const bool is_sum = operation->getOpcode() == llvm::Instruction::Add && is_number_argument(other);
    const bool is_shift =
        operation->isShift() && operation->getOperand(0) == &value && llvm::isa<llvm::Constant>(other);
    return (is_sum || is_shift) && is_index_alone(user, depth + 1);
}

// Whether the value, plus arguments, is an index and nothing else.
bool is_index_alone(const llvm::Value& value, unsigned depth) {
    constexpr unsigned depth_max = 8;
    return depth < depth_max &&
           llvm::all_of(value.users(), [&](const llvm::User* user) { return keeps_index(value, *user, depth); });
}

// Several products with an argument are places in as many rows, and it is their length.
bool is_in_one_product(const llvm::Value& argument) {
    return llvm::count_if(argument.users(), [](const llvm::User* user) {
               const auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(user);
               return operation && operation->getOpcode() == llvm::Instruction::Mul;
           }) == 1;
}

// The operand of the product that is such an argument; null when there is none.
llvm::Value* increment_of(llvm::BinaryOperator& product) {
    if (product.getOpcode() != llvm::Instruction::Mul || !product.getType()->isIntegerTy())
        return nullptr;
    for (llvm::Value* operand : product.operand_values())
        if (is_number_argument(*operand) && is_in_one_product(*operand) && is_index_alone(product))
            return operand;
    return nullptr;
}

}  // namespace

bool have_increments(llvm::ArrayRef<llvm::BasicBlock*> blocks) {
    return llvm::any_of(blocks, [](llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](llvm::Instruction& instruction) {
            auto* const product = llvm::dyn_cast<llvm::BinaryOperator>(&instruction);
            return product && increment_of(*product);
        });
    });
}

// Nothing where no assumption is made about the product.
std::optional<LaneShape> LaneShapes::incremented(llvm::BinaryOperator& product) {
    if (increments_ == Increments::any)
        return std::nullopt;
    llvm::Value* const increment = increment_of(product);
    if (increment == nullptr || !loop_.isLoopInvariant(increment))
        return std::nullopt;
    const LaneShape id = of(product.getOperand(product.getOperand(0) == increment ? 1 : 0));
    if (!id.is_strided() || id.is_uniform())
        return std::nullopt;
    if (!llvm::is_contained(assumed_one_, increment))
        assumed_one_.push_back(increment);
    return id;
}

}  // namespace polder::compiler::workgroup
