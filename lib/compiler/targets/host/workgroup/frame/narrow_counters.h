// Narrows loop counters that LLVM has widened from 32 to 64 bits: `for (uint i = get_global_id(0); i < n; i += get_global_size(0))`.
//
// The id and the size have 64 bits, and each sum is cut to 32. InstCombine moves the cuts to the uses of the loop's phi, which then counts with 64
// bits. For a 32-bit sum, the step between neighbouring work-items is known, modulo 2^32. For a 64-bit sum that is cut in each
// iteration it is not known, because the cut changes a sum that wraps around. This pass moves the cuts back.
//
// Runs after LLVM's passes over a kernel's body, which would undo it.
#pragma once

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Returns the number of phis that have 32 bits now.
unsigned narrow_counters(llvm::Function& function);

}  // namespace polder::compiler::workgroup
