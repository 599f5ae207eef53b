// Structures whose length is known at run time only, such as the pixels of `image[(y * width + x) * channels + 1]`: the lanes' addresses have no constant
// step, so each lane would access its elements alone. But the length is mostly the number of the elements that are accessed, or 4 for three of them.
// So the loop over work-items is copied for these lengths:
//
//     if (channels == 4) the loop with 4 in place of `channels`; else if (channels == 3) the same with 3; else the loop as it was
//
// In the same way the strides of single elements (element_strides.h) are mostly 1, and so are some divisors (asked_divisors.h).
#pragma once

#include <llvm/IR/PassManager.h>

namespace polder::compiler::workgroup {

// Changes each loop over work-items with such accesses; the copies keep its tags.
void separate_structure_lengths(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
