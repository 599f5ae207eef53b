// Steps of merges without branches, such as of two sorted lists of which one has the next number:
//
//     while (i < i_end && j < j_end)
//         if (a[i] == b[j])  out[k++] = a[i++], ++j;
//         else if (a[i] < b[j])  out[k++] = a[i++];
//         else  ++j;
//
// Which branch is taken depends on the data of both lists, so a processor cannot predict it, and waits for about 15 cycles at every second step. LLVM joins
// two sides that do the same, but not three sides, and not a store of one side alone. Here all sides are computed, and what the step has done is chosen. A
// store that some sides lack goes to a variable of its own there.
//
// A step is known as one of a merge when it decides by two loads, of which each is at an index of its own that the step advances or not.
#pragma once

#include <llvm/IR/PassManager.h>

namespace polder::compiler {

// For kernels without lanes, after LLVM's passes, which would make branches again. Returns how many branches of loops have been replaced.
unsigned choose_merge_steps(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler
