// Calls of a cold function for the active lanes of a vector, as one call.
//
// A copy of the call for each of 16 lanes makes 33 basic blocks, and all vector registers have to be saved around them: the 28 sines and
// cosines of an FFT were 1,100 blocks, for which LLVM's register allocator took half of the time for the whole kernel. The lanes
// are instead a loop in a function of their own, one for each callee and width.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace polder::compiler::workgroup {

// Whether `instruction` is a call that call_rare() can make for `lanes` lanes.
[[nodiscard]] bool is_rare_call(const llvm::Instruction& instruction, unsigned lanes);

// Calls the function of `call` for the lanes in `mask`, in their order. `arguments`: a vector with an element for each lane, or one value for all lanes.
// Returns the vector of results, whose elements for other lanes are undefined.
llvm::CallInst* call_rare(llvm::IRBuilder<>& builder, const llvm::CallInst& call,
                          llvm::ArrayRef<llvm::Value*> arguments, llvm::Value& mask);

}  // namespace polder::compiler::workgroup
