// compiler::compile: source to an object Module. The options are parsed; the module is looked up among recent builds and in the cache on disk;
// else a frontend makes it, guarded against crashes. A driver that compiles itself gets the source with the module.
#include "crash_guard.h"
#include "files/debug_source.h"
#include "files/paths.h"
#include "frontend/build_options.h"
#include "frontend/clang/frontend.h"
#include "frontend/clang/frontend_cache.h"
#include "frontend/spirv/frontend.h"
#include "module/bitcode.h"
#include "module/block_kernels.h"
#include "module/module.h"
#include "module/unsupported_code.h"
#include "module/value_names.h"
#include "program/recent_builds.h"

#include <base/log.h>
#include <compiler/compiler.h>
#include <compiler/opencl_version.h>

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/LLVMContext.h>

namespace polder::compiler {
namespace {

// Compiles once more, with debug information, to find the lines of code that the link may have to report.
void find_lines(llvm::Module& module, const CompileInput& input, BuildOptions options, llvm::LLVMContext& context) {
    if (options.has_debug_information)
        return keep_lines(module, module);
    options.has_debug_information = true;
    std::string same_log;
    if (const auto same = run_frontend(input, options, context, same_log))
        keep_lines(module, *same->module);
}

Result<FrontendResult> read_spirv(const CompileInput& input, const BuildOptions& options, llvm::LLVMContext& context,
                                  std::string& log) {
    const bool is_exact = llvm::is_contained(options.clang, "-cl-fp32-correctly-rounded-divide-sqrt");
    POLDER_ASSIGN(module, run_spirv_frontend(input, is_exact, context, log));
    prepare_blocks(*module);
    return FrontendResult{std::move(module)};
}

// Code with debug information is announced to debuggers until its program is released, so no other program may share it.
void keep_recent(const std::string& key, const std::shared_ptr<const Module>& module, const BuildOptions& options) {
    if (!options.has_debug_information)
        RecentBuilds::get().keep_compiled(key, module);
}

Result<std::shared_ptr<const Module>> compile_parsed(const CompileInput& input, const BuildOptions& options,
                                                     const std::string& key, std::string& log) {
    if (options.has_debug_information && input.language == CompileInput::Language::opencl_c)
        keep_debug_source(input.source);
    if (auto cached = load_frontend_result(key)) {
        keep_recent(key, *cached, options);
        return std::move(*cached);
    }

    llvm::LLVMContext context;
    set_value_names(context);
    auto frontend = input.language == CompileInput::Language::spirv ? read_spirv(input, options, context, log)
                                                                    : run_frontend(input, options, context, log);
    if (!frontend)
        return fail(frontend.error());
    if (input.language == CompileInput::Language::opencl_c && may_be_unsupported(*frontend->module))
        find_lines(*frontend->module, input, options, context);
    CompiledModule::Parts parts;
    parts.kind = ModuleKind::compiled_object;
    parts.bitcode = write_bitcode(*frontend->module);
    parts.options = {.is_optimized = options.is_optimized, .flushes_subnormals = options.flushes_subnormals};
    auto module = std::make_shared<const CompiledModule>(std::move(parts));
    // Warnings are not kept with a cached result, so that a program with warnings is compiled again.
    if (!frontend->reads_files && log.empty()) {
        store_frontend_result(key, *module);
        keep_recent(key, module, options);
    }
    return std::shared_ptr<const Module>(std::move(module));
}

// "Options Controlling the OpenCL C version": -cl-std=CL3.1 fails on devices of OpenCL 3.0.
Result<void> check_standard(const CompileInput& input, const BuildOptions& options, std::string& log) {
    if (options.standard != "CL3.1" || opencl_version(input.target) >= 310)
        return {};
    log += "error: the device has no OpenCL C 3.1\n";
    return fail(Status::compile_program_failure);
}

// The same module with what it was compiled from, for a driver that compiles it itself.
std::shared_ptr<const Module> with_source(const std::shared_ptr<const Module>& module, const CompileInput& input) {
    driver::SourceUnit unit;
    if (input.language == CompileInput::Language::spirv)
        unit.language = driver::SourceUnit::Language::spirv;
    unit.text = input.source;
    unit.options = input.options;
    for (const NamedSource& header : input.headers)
        unit.headers.push_back({header.name, header.text});
    for (const SpecializationValue& value : input.specialization)
        unit.constants.push_back(
            {value.id, std::string(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size())});
    CompiledModule::Parts parts = static_cast<const CompiledModule&>(*module).parts();
    parts.source.units.push_back(std::move(unit));
    return std::make_shared<const CompiledModule>(std::move(parts));
}

// What compile() returns: a driver that compiles itself needs the source.
std::shared_ptr<const Module> finished(std::shared_ptr<const Module> module, const CompileInput& input) {
    return input.target.code.format == driver::CodeFormat::opencl_c ? with_source(module, input) : std::move(module);
}

// The frontends return compile_program_failure; clBuildProgram has an error code of its own.
Status failure_of(const CompileInput& input, Status status) {
    return input.is_build && status == Status::compile_program_failure ? Status::build_program_failure : status;
}

}  // namespace

Result<std::shared_ptr<const Module>> compile(const CompileInput& input, std::string& log) {
    auto options = parse_options(input.options, input.is_build ? OptionStage::build : OptionStage::compile);
    if (!options) {
        log += std::string{options.error().detail()} + "\n";
        return fail(options.error());
    }
    if (paths().resource_directory.empty() && input.language == CompileInput::Language::opencl_c) {
        log += paths().problem;
        return fail(failure_of(input, Status::compile_program_failure), paths().problem);
    }
    if (auto checked = check_standard(input, *options, log); !checked)
        return fail(failure_of(input, checked.error().status()));
    const std::string key = frontend_cache_key(input, *options);
    if (auto recent = RecentBuilds::get().compiled(key))
        return finished(std::move(recent), input);
    Result<std::shared_ptr<const Module>> result = fail(Status::compile_program_failure);
    if (const auto crash = run_guarded([&] { result = compile_parsed(input, *options, key, log); })) {
        log += "error: " + *crash + "\n";
        return fail(failure_of(input, Status::compile_program_failure), *crash);
    }
    if (!result)
        return fail(failure_of(input, result.error().status()), std::string{result.error().detail()});
    return finished(std::move(*result), input);
}

}  // namespace polder::compiler
