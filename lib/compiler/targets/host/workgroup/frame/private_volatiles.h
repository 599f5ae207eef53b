// Volatile variables of one work-item. No other work-item sees them.
#pragma once

namespace llvm {
class Function;
class Instruction;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Variables that are only loaded, and stored with constants, are not volatile any more: what is loaded is known. A counter that a program
// makes volatile to pass time stays so, and a number that must be rounded before it is used.
void forget_volatile_constants(llvm::Function& function);

// Whether the instruction loads or stores a variable of its work-item.
bool accesses_own_variable(const llvm::Instruction& instruction);

}  // namespace polder::compiler::workgroup
