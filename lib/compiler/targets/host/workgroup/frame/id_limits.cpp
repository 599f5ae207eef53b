// A number is followed to the ids from which it is computed. Each step gives the largest result in more bits than the number has; where that fits, nothing
// wraps around. What is not followed is at most what LLVM's known bits say.
#include "id_limits.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"
#include "usual_launches.h"

#include <compiler/compiler.h>

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned depth_max = 8, dimensions = 3, shift_max = 32;

uint64_t largest(const llvm::Value& value) {
    return llvm::maskTrailingOnes<uint64_t>(value.getType()->getIntegerBitWidth());
}

// What is known without ids.
std::optional<uint64_t> most_by_bits(const llvm::Instruction& value) {
    const uint64_t most = llvm::computeKnownBits(&value, value.getDataLayout()).getMaxValue().getZExtValue();
    return most < largest(value) ? std::optional(most) : std::nullopt;
}

// Where the number has enough bits for it.
std::optional<uint64_t> in_type_of(const llvm::Value& value, std::optional<uint64_t> most) {
    return most && *most <= largest(value) ? most : std::nullopt;
}

}  // namespace

IdLimits::IdLimits(const llvm::Function& work_group_function)
    : are_launches_usual_(has_usual_launches(work_group_function)) {}

// Sums, products and extensions, where they lose no bits. They never do if the result of the same operation in more bits fits.
std::optional<uint64_t> IdLimits::most_of(const llvm::Instruction& operation, unsigned depth) const {
    const auto of = [&](unsigned operand) { return most(*operation.getOperand(operand), depth + 1); };
    const auto both = [&](auto combine) {
        const auto left = of(0), right = left ? of(1) : std::nullopt;
        return left && right ? in_type_of(operation, combine(*left, *right)) : std::nullopt;
    };
    switch (operation.getOpcode()) {
    case llvm::Instruction::Add:
        return both([](uint64_t left, uint64_t right) { return llvm::SaturatingAdd(left, right); });
    case llvm::Instruction::Mul:
        return both([](uint64_t left, uint64_t right) { return llvm::SaturatingMultiply(left, right); });
    case llvm::Instruction::Shl:
        return both([](uint64_t left, uint64_t right) {
            return right < shift_max ? llvm::SaturatingMultiply(left, uint64_t{1} << right) : UINT64_MAX;
        });
    case llvm::Instruction::Trunc:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::LShr:
    case llvm::Instruction::UDiv:
    case llvm::Instruction::URem: return in_type_of(operation, of(0));
    case llvm::Instruction::And: {
        const auto left = of(0);
        return left ? left : of(1);
    }
    case llvm::Instruction::SExt: {
        const auto most = of(0);
        return most && *most <= largest(*operation.getOperand(0)) / 2 ? most : std::nullopt;
    }
    default: return std::nullopt;
    }
}

std::optional<uint64_t> IdLimits::most(const llvm::Value& value, unsigned depth) const {
    const auto* const type = llvm::dyn_cast<llvm::IntegerType>(value.getType());
    if (type == nullptr || type->getBitWidth() > 64)
        return std::nullopt;
    if (const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(&value))
        return constant->getZExtValue();
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || depth > depth_max)
        return std::nullopt;
    const auto dimension = local_id_dimension(*instruction);
    if (dimension && *dimension < dimensions && are_launches_usual_)
        return usual_size_max;
    const auto computed = most_of(*instruction, depth);
    return computed ? computed : most_by_bits(*instruction);
}

bool IdLimits::is_not_negative(const llvm::Value& value) const {
    const auto most = this->most(value);
    return most && *most <= largest(value) / 2;
}

void divide_without_signs(llvm::Function& function, const IdLimits& limits) {
    using namespace llvm::PatternMatch;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        const bool is_quotient = instruction.getOpcode() == llvm::Instruction::SDiv;
        if ((!is_quotient && instruction.getOpcode() != llvm::Instruction::SRem) ||
            !instruction.getType()->isIntegerTy() || !match(instruction.getOperand(1), m_StrictlyPositive()) ||
            !limits.is_not_negative(*instruction.getOperand(0)))
            continue;
        auto* const result = llvm::BinaryOperator::Create(
            is_quotient ? llvm::Instruction::UDiv : llvm::Instruction::URem, instruction.getOperand(0),
            instruction.getOperand(1), "", instruction.getIterator());
        if (is_quotient)
            result->setIsExact(instruction.isExact());
        result->setDebugLoc(instruction.getDebugLoc());
        result->takeName(&instruction);
        instruction.replaceAllUsesWith(result);
        instruction.eraseFromParent();
    }
}

}  // namespace polder::compiler::workgroup
