// OpenCL C to LLVM IR, by Clang inside this process.
//
// The source and the headers that the application passes stay in memory; no file is written. The result is
// unoptimised, target-neutral IR: for spir64, with numbered address spaces, and with calls of built-ins that are not
// resolved. Any thread, each with its own LLVMContext.
// Errors: compile_program_failure with Clang's diagnostics in the log.
#pragma once

#include "frontend/build_options.h"

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>
#include <memory>
#include <string>

namespace polder::compiler {

struct FrontendResult {
    std::unique_ptr<llvm::Module> module;
    bool reads_files = false;  // an #include was found on disk: the result depends on more than the input
};

[[nodiscard]] Result<FrontendResult> run_frontend(const CompileInput& input, const BuildOptions& options,
                                                  llvm::LLVMContext& context, std::string& log);

// The command line of Clang for `input`; part of cache keys.
[[nodiscard]] std::vector<std::string> frontend_arguments(const CompileInput& input, const BuildOptions& options);

} // namespace polder::compiler
