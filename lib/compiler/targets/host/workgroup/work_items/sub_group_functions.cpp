#include "sub_group_functions.h"

#include <array>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <utility>

namespace polder::compiler::workgroup {

namespace {

using Kind = SubGroupOperation::Kind;
using Combine = SubGroupOperation::Combine;

constexpr llvm::StringLiteral prefix = "_polder_sub_group_";

constexpr std::array kinds{
    std::pair{llvm::StringLiteral("ballot"), Kind::ballot},
    std::pair{llvm::StringLiteral("sync"), Kind::synchronize},
    std::pair{llvm::StringLiteral("shuffle"), Kind::shuffle},
    std::pair{llvm::StringLiteral("reduce"), Kind::reduce},
    std::pair{llvm::StringLiteral("inclusive"), Kind::scan_inclusive},
    std::pair{llvm::StringLiteral("exclusive"), Kind::scan_exclusive},
    std::pair{llvm::StringLiteral("clustered"), Kind::clustered},
};

constexpr std::array combinations{
    std::pair{llvm::StringLiteral("add"), Combine::add},     std::pair{llvm::StringLiteral("mul"), Combine::multiply},
    std::pair{llvm::StringLiteral("min"), Combine::min},     std::pair{llvm::StringLiteral("max"), Combine::max},
    std::pair{llvm::StringLiteral("and"), Combine::bit_and}, std::pair{llvm::StringLiteral("or"), Combine::bit_or},
    std::pair{llvm::StringLiteral("xor"), Combine::bit_xor},
};

std::optional<SubGroupOperation> operation_named(llvm::StringRef name) {
    if (!name.consume_front(prefix))
        return std::nullopt;
    const auto [kind_name, rest] = name.split('_');
    const auto [combine_name, type_name] = rest.split('_');
    SubGroupOperation operation;
    bool is_known = false;
    for (const auto& [text, kind] : kinds)
        if (text == kind_name) {
            operation.kind = kind;
            is_known = true;
        }
    for (const auto& [text, combine] : combinations)
        if (text == combine_name)
            operation.combine = combine;
    operation.is_unsigned = type_name.starts_with("u");
    return is_known ? std::optional{operation} : std::nullopt;
}

}  // namespace

bool is_sub_group_operation(const llvm::Function& function) {
    return function.isDeclaration() && operation_named(function.getName()).has_value();
}

std::optional<SubGroupOperation> sub_group_operation(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
    return callee && callee->isDeclaration() ? operation_named(callee->getName()) : std::nullopt;
}

bool has_sub_group_operation(const llvm::BasicBlock& block) {
    for (const llvm::Instruction& instruction : block)
        if (sub_group_operation(instruction))
            return true;
    return false;
}

llvm::Constant* identity_of(const SubGroupOperation& operation, llvm::Type& type) {
    const bool is_floating = type.isFloatingPointTy();
    const unsigned bits = type.getScalarSizeInBits();
    const auto integer = [&](const llvm::APInt& value) { return llvm::ConstantInt::get(&type, value); };
    switch (operation.combine) {
    case Combine::multiply: return is_floating ? llvm::ConstantFP::get(&type, 1.0) : llvm::ConstantInt::get(&type, 1);
    case Combine::min:
        if (is_floating)
            return llvm::ConstantFP::getInfinity(&type);
        return integer(operation.is_unsigned ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits));
    case Combine::max:
        if (is_floating)
            return llvm::ConstantFP::getInfinity(&type, true);
        return integer(operation.is_unsigned ? llvm::APInt::getMinValue(bits) : llvm::APInt::getSignedMinValue(bits));
    case Combine::bit_and: return llvm::Constant::getAllOnesValue(&type);
    default: return llvm::Constant::getNullValue(&type);
    }
}

}  // namespace polder::compiler::workgroup
