// Loops that have vectors already, in functions of many loops.
//
// LLVM's vectorizer refuses a loop with vectors, but first asks how its counters grow, for which scalar evolution searches all blocks before the loop. Between
// hundreds of barriers that takes quadratic time.
#pragma once

namespace llvm {
class PassBuilder;
}  // namespace llvm

namespace polder::compiler {

// Before LLVM's vectorizer: marks such loops as those that it has made. `loops_min`: of a function with so few loops none are marked.
void add_finished_loops_pass(llvm::PassBuilder& builder, unsigned loops_min);

}  // namespace polder::compiler
