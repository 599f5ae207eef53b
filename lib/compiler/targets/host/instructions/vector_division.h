// Integer divisions of a kernel's own vectors, where work-items are not lanes: by quotients of floating-point numbers, as lanes are divided
// (workgroup/vectorizer/code/lane_division.h). Processors divide integers one by one.
//
// Vectors of four or more elements of up to 32 bits. Divisions by constants are products already. The divisors are guarded (division_guard.h).
//
// Runs after all other passes over IR that know integer divisions.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void divide_vectors(llvm::Function& function);

}  // namespace polder::compiler
