// compiler::link: objects and libraries to a library or an executable Module.
//
// An executable is target-neutral: Clang's module for spir64 with its program-scope variables taken out. Code for a target is
// generated from it on demand.
#include "crash_guard.h"
#include "frontend/build_options.h"
#include "module/bitcode.h"
#include "module/diagnostics.h"
#include "module/kernel_info.h"
#include "module/module.h"
#include "module/program_variables.h"
#include "module/value_names.h"
#include "module/verified.h"
#include "program/recent_builds.h"
#include "targets/host/lower.h"

#include <compiler/compiler.h>

#include <algorithm>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Linker/Linker.h>

namespace polder::compiler {
namespace {

const CompiledModule& impl(const std::shared_ptr<const Module>& module) {
    return static_cast<const CompiledModule&>(*module);
}

Result<std::unique_ptr<llvm::Module>> combine(const LinkInput& input, llvm::LLVMContext& context) {
    std::unique_ptr<llvm::Module> whole;
    for (const auto& module : input.modules) {
        auto part = read_bitcode(impl(module).bitcode(), context, BitcodeReading::whole);
        if (!part)
            return fail(part.error());
        if (!whole)
            whole = std::move(*part);
        else if (llvm::Linker::linkModules(*whole, std::move(*part)))
            return fail(Status::link_program_failure);
    }
    return whole;
}

Result<void> check_sub_group_sizes(std::span<const KernelInfo> kernels, std::string& log) {
    const auto sizes = sub_group_sizes();
    for (const KernelInfo& kernel : kernels) {
        const auto size = kernel.reqd_sub_group_size;
        if (!size || std::find(sizes.begin(), sizes.end(), *size) != sizes.end())
            continue;
        log += "error: kernel '" + kernel.name + "' requires sub-groups of " + std::to_string(*size) +
               " work-items; the device has 4, 8, 16, 32 and 64\n";
        return fail(Status::link_program_failure);
    }
    return {};
}

// The executable keeps the target-neutral form. Kernels are examined in the host form, which contains the built-ins, for all targets, so
// that the results are the same. `only`: what the module was read from, if that is one object, whose bitcode needs not be written again when
// nothing is taken out of it.
Result<CompiledModule::Parts> make_executable(llvm::Module& module, const CompiledModule* only, std::string& log) {
    const bool is_unchanged = only != nullptr && !has_program_variables(module);
    auto variables = extract_program_variables(module);
    if (!variables)
        return fail(variables.error());
    POLDER_TRY(verified(module, "taking out program-scope variables"));
    CompiledModule::Parts parts;
    parts.kind = ModuleKind::executable;
    parts.bitcode = is_unchanged ? std::string{only->bitcode()} : write_bitcode(module);
    POLDER_TRY(lower_for_host(module, log));
    parts.kernels = kernel_infos(module);
    parts.blocks = block_infos(module);
    POLDER_TRY(check_sub_group_sizes(parts.kernels, log));
    parts.host_bitcode = write_bitcode(module);
    parts.variables = std::move(*variables);
    return parts;
}

Result<std::shared_ptr<const Module>> link_parsed(const LinkInput& input, const BuildOptions& options,
                                                  std::string& log) {
    llvm::LLVMContext context;
    set_value_names(context);
    context.setDiagnosticHandler(std::make_unique<LogDiagnostics>(log));
    auto whole = combine(input, context);
    if (!whole)
        return fail(whole.error());
    CompiledModule::Parts parts;
    parts.kind = ModuleKind::library;
    if (!options.makes_library) {
        const CompiledModule* const only = input.modules.size() == 1 ? &impl(input.modules.front()) : nullptr;
        auto made = make_executable(**whole, only, log);
        if (!made)
            return fail(made.error());
        parts = std::move(*made);
    } else {
        parts.bitcode = write_bitcode(**whole);
    }
    parts.options.flushes_subnormals = true;
    for (const auto& module : input.modules) {
        parts.options.flushes_subnormals &= impl(module).options().flushes_subnormals;
        parts.options.is_optimized &= impl(module).options().is_optimized;
        const driver::SourceProgram& source = impl(module).source();
        parts.source.units.insert(parts.source.units.end(), source.units.begin(), source.units.end());
    }
    parts.options.flushes_subnormals |= options.flushes_subnormals;
    parts.source.link_options = input.options;
    parts.source.is_build = input.is_build;
    return std::make_shared<const CompiledModule>(std::move(parts));
}

}  // namespace

Result<std::shared_ptr<const Module>> link(const LinkInput& input, std::string& log) {
    const Status failure = input.is_build ? Status::build_program_failure : Status::link_program_failure;
    auto options = parse_options(input.options, input.is_build ? OptionStage::build : OptionStage::link);
    if (!options) {
        log += std::string{options.error().detail()} + "\n";
        return fail(options.error());
    }
    if (input.modules.empty())
        return fail(Status::invalid_value, "nothing to link");
    Result<std::shared_ptr<const Module>> result = RecentBuilds::get().linked(input);
    if (*result != nullptr)
        return result;
    const size_t log_bytes = log.size();
    if (const auto crash = run_guarded([&] { result = link_parsed(input, *options, log); })) {
        log += "error: " + *crash + "\n";
        return fail(failure, *crash);
    }
    if (!result) {
        if (const std::string_view detail = result.error().detail(); !detail.empty())
            log += std::string{detail} + (detail.back() == '\n' ? "" : "\n");
        return fail(result.error().status() == Status::invalid_binary ? Status::invalid_binary : failure,
                    std::string{result.error().detail()});
    }
    if (log.size() == log_bytes)  // a program with messages is linked again, to produce the messages again
        RecentBuilds::get().keep_linked(input, *result);
    return result;
}

}  // namespace polder::compiler
