// Translates SPIR-V to LLVM IR of the same form as Clang's: unoptimised, with spir64's triple and address spaces.
//
// Four steps: the module's requirements are checked against the device; SPIRV-Tools' validator checks the module; each
// instruction is translated; LLVM's verifier checks the result. Any thread, each with its own LLVMContext.
// Errors: compile_program_failure; the log names the instruction.
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>
#include <memory>
#include <string>

namespace polder::compiler {

// `is_exact`: quotients and roots of float are correctly rounded (-cl-fp32-correctly-rounded-divide-sqrt).
[[nodiscard]] Result<std::unique_ptr<llvm::Module>> run_spirv_frontend(const CompileInput& input, bool is_exact,
                                                                       llvm::LLVMContext& context, std::string& log);

}  // namespace polder::compiler
