// Places that were computed in floating point, such as that of the nearest element of an image, are expected to be the integer at the beginning of the
// computation: (int)((y + 0.5f) / height * height) is y in most cases. A branch compares both. Processors predict it, and load from the integer's place
// without waiting for the conversions, the division and the product, which take 40 cycles and more, at the beginning of each row of an image.
// Whatever is expected, the result is the computed place.
//
// Runs after LLVM's passes, which would see that both branches give the same number. Not in innermost loops: there, the places of many work-items are computed
// at the same time, so their speed does not depend on how long one takes.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void expect_places(llvm::Function& function);

}  // namespace polder::compiler
