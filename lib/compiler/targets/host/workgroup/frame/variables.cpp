#include "variables.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

namespace polder::compiler::workgroup {

void promote_variables(llvm::Function& function) {
    llvm::SmallVector<llvm::AllocaInst*> variables;
    for (llvm::Instruction& instruction : function.getEntryBlock())
        if (auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
            variable && llvm::isAllocaPromotable(variable))
            variables.push_back(variable);
    if (variables.empty())
        return;
    llvm::DominatorTree dominators(function);
    llvm::PromoteMemToReg(variables, dominators);
}

}  // namespace polder::compiler::workgroup
