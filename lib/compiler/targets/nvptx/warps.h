// Sub-groups on NVPTX are warps: the functions `_polder_warp_...` of lib/kernel/cl/nvptx/warp.h become instructions of PTX.
#pragma once

#include <llvm/IR/Module.h>
#include <string>

namespace polder::compiler {

inline constexpr uint32_t warp_size = 32;

// `processor` ("sm_90") decides whether PTX has the reductions.
void replace_warp_functions(llvm::Module& module, const std::string& processor);

}  // namespace polder::compiler
