// Calls of a cold function for the active lanes of a vector, as one call.
//
// A copy of the call for each of 16 lanes makes 33 basic blocks, and all vector registers have to be saved around them: the 28 sines and
// cosines of an FFT were 1,100 blocks, for which LLVM's register allocator took half of the time for the whole kernel. The lanes
// are instead a loop in a function of their own, one for each callee and width. That function saves every register that it uses, so that the code
// around the call keeps its values in registers, as if there was no call.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <string>

namespace polder::compiler::workgroup {

// LLVM's attribute of functions that save every register that they change.
inline constexpr const char* saves_registers_attribute = "no_caller_saved_registers";

// Marks the functions that call_rare() makes; the value is the number of lanes.
inline constexpr const char* rare_lanes_attribute = "polder-rare-lanes";

// The "target-features" of `function` on a processor with `features`. On x86 a function ends with vzeroupper, which clears the upper halves
// of vector registers. Functions with the attribute must not.
[[nodiscard]] std::string features_of(const llvm::Function& function, llvm::StringRef features);

// Whether `instruction` is a call that call_rare() can make for `lanes` lanes.
[[nodiscard]] bool is_rare_call(const llvm::Instruction& instruction, unsigned lanes);

// Calls the function of `call` for the lanes in `mask`, in their order. `arguments`: a vector with an element for each lane, or one value for all lanes.
// `memory`: the variable of earlier calls in the same LLVM function (values_in_memory.h); null before the first, which sets it. Returns the vector of
// results, in which elements of inactive lanes are undefined, or null when the function returns nothing.
llvm::Value* call_rare(llvm::IRBuilder<>& builder, const llvm::CallInst& call, llvm::ArrayRef<llvm::Value*> arguments,
                       llvm::Value& mask, llvm::AllocaInst*& memory);

}  // namespace polder::compiler::workgroup
