// The steps of one generation in order (PtxGeneration::run), and which version of PTX a kernel needs.
#include "code_generator.h"

#include "analyses.h"
#include "approximations.h"
#include "builtins/builtins.h"
#include "divergent_loops.h"
#include "fences.h"
#include "float_additions.h"
#include "kernel_entry.h"
#include "machine/nvptx.h"
#include "machine/object_emitter.h"
#include "module/diagnostics.h"
#include "module/named_spaces.h"
#include "module/reachable.h"
#include "module/unsupported_code.h"
#include "module/value_names.h"
#include "module/verified.h"
#include "module/zeroed_memory.h"
#include "print.h"
#include "warps.h"

#include <base/log.h>

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <polder/ptx_abi.h>

namespace polder::compiler {
namespace {

void optimize(llvm::Module& module, llvm::TargetMachine& machine, const CodeOptions& options) {
    llvm::PassBuilder builder(&machine);
    add_divergent_loop_passes(builder);
    Analyses analyses;
    analyses.register_all(builder);
    const auto level = options.is_optimized ? llvm::OptimizationLevel::O3 : llvm::OptimizationLevel::O1;
    builder.buildPerModuleDefaultPipeline(level).run(module, analyses.modules);
}

Result<std::string> emit_ptx(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::SmallVector<char, 0> text;
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager passes;
    passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
    add_loop_passes(passes, machine, Reduction::on);
    if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
        return fail(Status::out_of_resources, "no code generator for PTX");
    passes.run(module);
    return std::string{text.data(), text.size()};
}

// What ptxas accepts before PTX 8.1.
constexpr uint32_t small_parameter_bytes = 4352;

PtxVersion version_for(const KernelInfo& kernel) {
    if (ptx_parameter_bytes(kernel.arguments_size) > small_parameter_bytes)
        return PtxVersion::large_parameters;
    return has_image(kernel) ? PtxVersion::parameter_addresses : PtxVersion::any;
}

class PtxGeneration {
public:
    explicit PtxGeneration(const PtxRequest& request)
        : request_(request), machine_(create_nvptx_machine(request.processor, version_for(request.kernel))) {}

    Result<PtxKernel> run() {
        if (machine_ == nullptr)
            return fail(Status::out_of_resources, "LLVM knows no processor " + request_.processor);
        set_value_names(context_);
        context_.setDiagnosticHandler(std::make_unique<LogDiagnostics>(diagnostics_));
        POLDER_ASSIGN(module, read_kernel(request_.module.bitcode(), request_.kernel.name, context_));
        llvm::StripDebugInfo(*module);
        zero_memory(*module, {&request_.kernel, 1}, request_.zeroed);
        answer_named_spaces(*module);
        retarget_to_nvptx(*module, spir64_address_spaces);
        POLDER_ASSIGN(prints, lower_print(*module));
        POLDER_TRY(verified(*module, "lowering for PTX"));
        const bool is_relaxed = use_approximations(*module);
        POLDER_TRY(link_builtins(*module));
        if (is_relaxed || request_.module.options().flushes_subnormals)
            flush_denormals(*module);
        POLDER_ASSIGN(entry,
                      make_kernel_entry(*module->getFunction(request_.kernel.name), request_.kernel, request_.groups));
        replace_warp_functions(*module, request_.processor);
        place_fences(*module);
        POLDER_TRY(verified(*module, "making an entry for PTX"));
        optimize(*module, *machine_, request_.module.options());
        lower_float_additions(*module);
        POLDER_TRY(verified(*module, "lowering additions for PTX"));
        POLDER_ASSIGN(text, emit_ptx(*module, *machine_));
        if (!diagnostics_.empty())
            return fail(Status::out_of_resources, diagnostics_);
        POLDER_LOG(compiler, "kernel %s: %zu bytes of PTX for %s", request_.kernel.name.c_str(), text.size(),
                   request_.processor.c_str());
        return PtxKernel{std::move(text), entry.local_bytes, entry.dynamic_local_bytes, prints};
    }

private:
    static Result<void> link_builtins(llvm::Module& module) {
        POLDER_ASSIGN(builtins, Builtins::for_nvptx());
        POLDER_TRY(builtins->link_into(module));
        std::string log;
        if (!check_supported(module, log))
            return fail(Status::out_of_resources, log);
        return {};
    }

    const PtxRequest& request_;
    std::unique_ptr<llvm::TargetMachine> machine_;
    std::string diagnostics_;
    llvm::LLVMContext context_;
};

} // namespace

Result<PtxKernel> generate_ptx(const PtxRequest& request) { return PtxGeneration{request}.run(); }

} // namespace polder::compiler
