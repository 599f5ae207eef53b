// A value occupies its registers from its definition to its last use, or to the end of the block where other blocks use it. Values of other
// blocks count up to their last use in the block.
#include "registers_alive.h"

#include <algorithm>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler {
namespace {

bool is_used_elsewhere(const llvm::Instruction& instruction) {
    return llvm::any_of(instruction.users(), [&](const llvm::User* user) {
        const auto* const other = llvm::cast<llvm::Instruction>(user);
        return other->getParent() != instruction.getParent() || llvm::isa<llvm::PHINode>(other);
    });
}

}  // namespace

size_t registers_alive(const llvm::BasicBlock& block, llvm::function_ref<size_t(const llvm::Value&)> registers_for) {
    llvm::SmallPtrSet<const llvm::Value*, 32> alive;
    size_t occupied = 0, most = 0;
    const auto add = [&](const llvm::Value& value) {
        if (const size_t registers = registers_for(value); registers > 0 && alive.insert(&value).second)
            occupied += registers;
    };
    for (const llvm::Instruction& instruction : block)
        if (registers_for(instruction) > 0 && is_used_elsewhere(instruction))
            add(instruction);
    for (const llvm::Instruction& instruction : llvm::reverse(block)) {
        most = std::max(most, occupied);
        if (alive.erase(&instruction))
            occupied -= registers_for(instruction);
        if (!llvm::isa<llvm::PHINode>(instruction))
            for (const llvm::Use& operand : instruction.operands())
                add(*operand);
    }
    return std::max(most, occupied);
}

}  // namespace polder::compiler
