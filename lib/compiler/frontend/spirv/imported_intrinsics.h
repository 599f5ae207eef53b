// Functions of LLVM that a module imports by their names. Translators from LLVM to SPIR-V keep an intrinsic function for which SPIR-V has no
// instruction as an imported function of this name; DPC++'s does so with `llvm.usub.sat.i32`.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>
#include <string>

namespace polder::compiler::spirv {

// LLVM's function of this name and type; null when LLVM has none, or when modules may not import it. Those that modules may import compute a
// result from integers and have no other effect.
[[nodiscard]] llvm::Function* imported_intrinsic(llvm::Module& module, const std::string& name,
                                                 llvm::FunctionType& type);

}  // namespace polder::compiler::spirv
