// What the runtime asks about a kernel (KernelInfo), from the function and Clang's metadata of it.
//
// Expects a retargeted module whose functions have had their attributes inferred: an argument that is
// `readonly`, `writeonly` or `readnone` there is never more than that, in the callees either, and a pointer that
// escapes (stored, made an integer) has none of these.
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>
#include <vector>

namespace polder::compiler {

[[nodiscard]] bool is_kernel(const llvm::Function& function);

// All kernels that `module` defines, sorted by name.
[[nodiscard]] std::vector<KernelInfo> kernel_infos(const llvm::Module& module);

} // namespace polder::compiler
