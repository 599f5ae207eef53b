// Uses the processor's approximations where a kernel's precision allows them, as NVIDIA's own compiler does.
//
// Always: rsqrt, whose instruction keeps OpenCL's bound of 2 ulp. Where Clang's !fpmath says that the quotient or the root need
// not be correctly rounded (no -cl-fp32-correctly-rounded-divide-sqrt): division (2 ulp of 2.5) and sqrt (1 ulp of 3). In calls
// that may be approximate (-cl-unsafe-math-optimizations, -cl-fast-relaxed-math): exponentials, logarithms, powers, sin, cos, tan, within
// the bounds of the specification's table "relaxed math"; and all arithmetic of floats flushes denormals, which
// those options include. Bounds of the instructions: "Parallel Thread Execution ISA", floating point instructions.
//
// The instructions are called through the native functions of lib/kernel/cl/nvptx/native.cl, before the built-ins are linked.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

// Redirects calls and divisions of the kernel's own code. True when that code may be approximate.
[[nodiscard]] bool use_approximations(llvm::Module& module);

// Must run after the built-ins are linked, for every function: LLVM does not inline a function whose mode differs.
void flush_denormals(llvm::Module& module);
void flush_denormals(llvm::Function& function);
[[nodiscard]] bool flushes_denormals(const llvm::Function& function);

}  // namespace polder::compiler
