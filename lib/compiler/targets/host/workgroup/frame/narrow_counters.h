// Counters of 32 bits that LLVM made numbers of 64: `for (uint i = get_global_id(0); i < n; i += get_global_size(0))`.
//
// The id and the size have 64 bits, and each sum is cut to 32. InstCombine moves the cuts behind the loop's phi, which then counts with 64 bits and
// is cut where it is used. Of a sum of 32 bits the step between neighbouring work-items is known, modulo 2^32; of one of 64
// bits that is cut in each round it is not, because the cut changes a sum that wraps around. This moves the cuts back.
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
