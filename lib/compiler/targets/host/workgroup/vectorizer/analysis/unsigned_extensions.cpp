#include "unsigned_extensions.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

// Whether the step of an operand may be the result's: other integer operations make what varies in this analysis, guesses apart.
bool passes_step_on(const llvm::Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Or:
    case llvm::Instruction::And:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
    case llvm::Instruction::AShr:
    case llvm::Instruction::LShr:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Freeze:
    case llvm::Instruction::PHI: return instruction.getType()->isIntegerTy();
    case llvm::Instruction::Xor: return is_complement(instruction);
    default: return false;
    }
}

// Whether `is_looked_for` is true of a user of `value` or of another number with its step.
bool has_user(const llvm::Instruction& value, llvm::function_ref<bool(const llvm::Instruction&)> is_looked_for,
              llvm::function_ref<bool(const llvm::Instruction&)> passes_on) {
    constexpr size_t values_max = 32;
    llvm::SmallPtrSet<const llvm::Instruction*, 16> seen{&value};
    llvm::SmallVector<const llvm::Instruction*> todo{&value};
    while (!todo.empty()) {
        for (const llvm::User* user : todo.pop_back_val()->users()) {
            const auto* instruction = llvm::cast<llvm::Instruction>(user);
            if (is_looked_for(*instruction))
                return true;
            if (passes_on(*instruction) && seen.insert(instruction).second)
                todo.push_back(instruction);
        }
        if (seen.size() > values_max)
            return true;
    }
    return false;
}

}  // namespace

bool is_complement(const llvm::Instruction& value) {
    return value.getType()->isIntegerTy() && value.getOpcode() == llvm::Instruction::Xor &&
           llvm::PatternMatch::match(&value, llvm::PatternMatch::m_Not(llvm::PatternMatch::m_Value()));
}

bool is_extended_as_unsigned(const llvm::Instruction& value) {
    return is_extended_as_unsigned(value, [](const llvm::ZExtInst&) { return true; });
}

bool is_extended_as_unsigned(const llvm::Instruction& value, llvm::function_ref<bool(const llvm::ZExtInst&)> matters) {
    const auto is_extension = [&](const llvm::Instruction& user) {
        const auto* const extension = llvm::dyn_cast<llvm::ZExtInst>(&user);
        return extension && !extension->hasNonNeg() && matters(*extension);
    };
    return has_user(value, is_extension, passes_step_on);
}

bool is_read_as_number(const llvm::Instruction& value) {
    const auto reads_number = [](const llvm::Instruction& user) {
        switch (user.getOpcode()) {
        case llvm::Instruction::Xor:
        case llvm::Instruction::And:
        case llvm::Instruction::LShr:
        case llvm::Instruction::AShr:
        case llvm::Instruction::BitCast:
        case llvm::Instruction::Store: return false;
        default: return !passes_step_on(user);
        }
    };
    // Shifts back and masks leave the step only in numbers of 64 bits. What is added to an exclusive or is a hash.
    const auto is_exclusive_or = [](const llvm::Value* operand) {
        const auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(operand);
        return operation && operation->getOpcode() == llvm::Instruction::Xor && !is_complement(*operation);
    };
    const auto passes_on = [&](const llvm::Instruction& user) {
        const unsigned code = user.getOpcode();
        return passes_step_on(user) && code != llvm::Instruction::And && code != llvm::Instruction::LShr &&
               code != llvm::Instruction::AShr && llvm::none_of(user.operand_values(), is_exclusive_or);
    };
    return has_user(value, reads_number, passes_on);
}

}  // namespace polder::compiler::workgroup
