// OpenCL C to LLVM IR, by Clang inside this process.
//
// The source and the headers that the application embeds stay in memory; nothing is written. The result is
// unoptimised, target-neutral IR: made for spir64, with its numbered address spaces and
// unresolved built-ins. Any thread, each with its own context.
// Errors: compile_program_failure with Clang's diagnostics in the log.
#pragma once

#include "program/build_options.h"

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

// What Clang is given for `input`, besides the source and the headers; part of cache keys.
[[nodiscard]] std::vector<std::string> frontend_arguments(const CompileInput& input, const BuildOptions& options);

} // namespace polder::compiler
