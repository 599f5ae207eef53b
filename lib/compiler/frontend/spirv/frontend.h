// SPIR-V to LLVM IR, in the form that Clang's frontend has: unoptimised, with spir64's
// triple and address spaces.
//
// A module is checked against the device, then by SPIRV-Tools' validator, then translated instruction by instruction, and
// what came out is checked by LLVM's verifier. Any thread, each with its own context.
// Errors: compile_program_failure; the log names the instruction.
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>
#include <memory>
#include <string>

namespace polder::compiler {

[[nodiscard]] Result<std::unique_ptr<llvm::Module>> run_spirv_frontend(const CompileInput& input,
                                                                       llvm::LLVMContext& context, std::string& log);

}  // namespace polder::compiler
