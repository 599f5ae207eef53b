// Numbers that wrap around at a few bits, beside wider ones, in loops that LLVM may make vectors of:
//
//     for (uint i = 0; i < n; ++i)  out[i] = row[b + i] + table[i & 3];
//
// LLVM takes `b + i` and `i & 3` as numbers that grow by 1 if neither wraps around, and asks that before the loop. LLVM 22 leaves out a question that
// follows from another one, for which it compares where both numbers begin and how they grow, but not their widths: that `b + i` fits into 32 bits would mean that i
// fits into 2. So all results behind the fourth one are wrong. Here the narrow number becomes one of which LLVM does not know how it grows.
#pragma once

namespace llvm {
class PassBuilder;
}  // namespace llvm

namespace polder::compiler {

// Before LLVM's vectorizer. Changes nothing where LLVM asks all that it has to. `eliminates_loads`: whether LLVM's elimination of loads in loops follows, which asks
// such questions for loops that stay as they are, too.
void add_narrow_wraps_pass(llvm::PassBuilder& builder, bool eliminates_loads);

}  // namespace polder::compiler
