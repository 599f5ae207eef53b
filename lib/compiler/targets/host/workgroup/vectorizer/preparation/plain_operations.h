// Rewrites operations without a form for lanes. An operation whose result is a structure becomes a call of a small function, which is called for one
// lane after the other. A cast of an explicit vector to one number, or back, becomes operations on its elements.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

namespace llvm {
class BitCastInst;
class Function;
class FunctionType;
class Instruction;
}  // namespace llvm

namespace polder::compiler::workgroup {

// For functions that must become lanes because they use sub-groups.
void make_operations_plain(llvm::Function& function);

// Atomic exchanges only.
void make_exchanges_plain(llvm::Function& function);

// An empty function to be inlined into `caller`, which compares and exchanges.
llvm::Function& make_exchange_function(llvm::Function& caller, llvm::FunctionType& type);

// What is known of an instruction may not hold in a function that other code calls. The mark of local atomics remains.
void forget_metadata(llvm::Instruction& instruction);

// Casts between explicit vectors and numbers, where `is_chosen`.
void make_casts_plain(llvm::Function& function, llvm::function_ref<bool(const llvm::BitCastInst&)> is_chosen);

}  // namespace polder::compiler::workgroup
