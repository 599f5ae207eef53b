// Loops whose checks at the edges all succeed have a copy without checks, as those over the taps of a filter, away from the ends of a row:
//
//     for (j = -r; j <= r; ++j)  sum += s[j + r] * (x + j < 0 ? first : x + j < n ? row[x + j] : last);
//
// A number that grows by the same step in each iteration is between 0 and a bound in all of them, if it is so in the first and in the last one. That is
// asked once, before the loop. LLVM removes such checks only where it knows the answer.
//
// Only for kernels without lanes: there, nothing else runs at the same time as the checks. Innermost loops of moderate length; runs before LLVM's passes,
// which make selects of the checks, unroll the loop with them, and move the conditions out that do not change.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class ICmpInst;
class Loop;
class ScalarEvolution;
}  // namespace llvm

namespace polder::compiler {

// A comparison in such a loop, and what it yields in every iteration of the copy.
struct PassedCheck {
    const llvm::ICmpInst* comparison = nullptr;
    bool result = true;
};
// Cheaper than scalar evolution: whether the loop may have such checks.
[[nodiscard]] bool may_have_passed_checks(const llvm::Loop& loop);
// The checks that a copy of the loop would lack; none where it will have no copy.
[[nodiscard]] llvm::SmallVector<PassedCheck, 4> passed_checks(llvm::Loop& loop, llvm::ScalarEvolution& evolution);

// Returns how many loops have a copy.
unsigned copy_without_passed_checks(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler
