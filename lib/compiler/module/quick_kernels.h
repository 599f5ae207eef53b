// Which kernels may have code of Effort::quick, and how much their work-items do.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace polder::compiler {

// How many instructions a work-item of `kernel` executes at most, and the arguments by whose values this number is multiplied. 0 when it is not
// known, or when code without lanes and with hardly any optimisation might have other results. `kernel` is in a module that was lowered to the
// host's form.
[[nodiscard]] std::pair<uint64_t, std::vector<uint32_t>> quick_work(const llvm::Function& kernel);

// Whether code with and without lanes has the same results, but for the sign of zeros that minimums and maximums return. `module` has a kernel and what
// it calls, in the host's form.
[[nodiscard]] bool has_same_results(const llvm::Module& module);

}  // namespace polder::compiler
