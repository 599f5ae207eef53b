#include "debug_variables.h"

#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

DebugVariables::DebugVariables(llvm::ArrayRef<llvm::BasicBlock*> body) {
    for (llvm::BasicBlock* block : body)
        for (llvm::Instruction& instruction : *block)
            for (llvm::DbgVariableRecord& record : llvm::filterDbgVars(instruction.getDbgRecordRange()))
                if (record.isDbgValue() && records_[llvm::DebugVariable(&record)]++ == 0)
                    variables_.push_back(&record);
}

void DebugVariables::describe(llvm::BasicBlock& entry, llvm::function_ref<llvm::Value*(llvm::Value*)> here) const {
    for (llvm::DbgVariableRecord* record : variables_) {
        const bool has_one_value =
            records_.lookup(llvm::DebugVariable(record)) == 1 && record->getNumVariableLocationOps() == 1;
        llvm::Value* before = has_one_value ? record->getVariableLocationOp(0) : nullptr;
        llvm::Value* now = before ? here(before) : nullptr;
        llvm::DbgVariableRecord* again = record->clone();
        if (now)
            again->replaceVariableLocationOp(before, now);
        else
            again->setKillLocation();
        entry.insertDbgRecordBefore(again, entry.getTerminator()->getIterator());
    }
}

} // namespace polder::compiler::workgroup
