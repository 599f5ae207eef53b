// The steps for one kernel, in order (class Generation): read the kernel; guard_divisions; fold_known_arguments; prefer_inlining; make the
// work-group function; optimize; emit. The size of the stack that the function needs comes from the object's .stack_sizes section.
#include "code_generator.h"

#include "bitcode_finalizer.h"
#include "cold_functions.h"
#include "files/cache.h"
#include "inlining.h"
#include "known_arguments.h"
#include "lower.h"
#include "machine/host.h"
#include "machine/machine_pool.h"
#include "module/diagnostics.h"
#include "module/quick_kernels.h"
#include "module/reachable.h"
#include "module/value_names.h"
#include "module/verified.h"
#include "optimization.h"
#include "other_forms.h"
#include "pass_gate.h"
#include "pass_times.h"
#include "quick_passes.h"
#include "targets/host/instructions/division_guard.h"
#include "targets/host/workgroup/frame/usual_launches.h"
#include "targets/host/workgroup/vectorizer/code/rare_calls.h"
#include "targets/host/workgroup/vectorizer/vector_functions.h"
#include "targets/host/workgroup/workgroup.h"

#include <base/log.h>
#include <base/options.h>
#include <compiler/optional_work.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/DataExtractor.h>

namespace polder::compiler {
namespace {

// A kernel of so many instructions, with all functions inlined, is too long to be compiled in lanes, whatever is simplified.
constexpr uint64_t instructions_in_lanes_max = 40000;

void set_processor(llvm::Module& module) {
    for (llvm::Function& function : module) {
        if (function.isDeclaration())
            continue;
        function.addFnAttr("target-cpu", host().cpu);
        function.addFnAttr("target-features", workgroup::features_of(function, host().features));
        function.addFnAttr("prefer-vector-width", host().preferred_vector_bits);
        function.addFnAttr(llvm::Attribute::NoUnwind);
    }
}

// For a debugger, the function of a whole work-group gets the kernel's debug information.
void move_debug_information(llvm::Function& kernel, llvm::Function& work_group_function) {
    work_group_function.setSubprogram(kernel.getSubprogram());
    kernel.setSubprogram(nullptr);
    kernel.deleteBody();
}

Result<std::string> emit_object(llvm::Module& module, ObjectEmitter& emitter) {
    POLDER_TRY(check_needed());
    PassGate gate(module);
    module.getContext().setOptPassGate(gate);
    auto object = emitter.emit(module, gate.reduces() ? Reduction::on : Reduction::off);
    module.getContext().setOptPassGate(llvm::getGlobalPassGate());
    POLDER_TRY(check_needed());
    return object;
}

// The sum of the stack frames of all functions in `object`, from its .stack_sizes section.
uint64_t stack_bytes_of(const std::string& object) {
    constexpr uint64_t call_overhead = 256;
    auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernel"));
    if (!file) {
        llvm::consumeError(file.takeError());
        return 0;
    }
    uint64_t total = call_overhead;
    for (const llvm::object::SectionRef& section : (*file)->sections()) {
        auto name = section.getName();
        auto contents = section.getContents();
        if (!name || !contents || *name != ".stack_sizes") {
            llvm::consumeError(name.takeError());
            llvm::consumeError(contents.takeError());
            continue;
        }
        llvm::DataExtractor data(*contents, true, 8);
        for (uint64_t at = 0; data.isValidOffset(at);) {
            data.getU64(&at);
            total += data.getULEB128(&at);
        }
    }
    return total;
}

// POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES: the final IR and the object of each kernel, in the cache directory.
void leave_files(const std::string& kernel, const llvm::Module& module, const std::string& object) {
    const std::filesystem::path directory = options::cache_directory();
    std::error_code error;
    make_private_directory(directory);
    llvm::raw_fd_ostream ir_file((directory / (kernel + ".ll")).string(), error);
    if (!error)
        module.print(ir_file, nullptr);
    llvm::raw_fd_ostream object_file((directory / (kernel + ".o")).string(), error);
    if (!error)
        object_file << object;
}

// For POCL_DEBUG=compiler: whether work-items are lanes, how many, of which dimension, and why not.
std::string rounded(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", ratio);
    return text;
}

std::string describe(const workgroup::LaneReport& lanes) {
    const std::string estimate =
        lanes.estimate > 0 ? "; estimated time with lanes by that without " + rounded(lanes.estimate) : std::string{};
    if (lanes.loops == 0)
        return "no lanes: " + lanes.reason + estimate;
    std::string text = std::to_string(lanes.width) + " lanes of dimension " + std::to_string(lanes.dimension);
    if (lanes.vectors > 1)
        text += ", " + std::to_string(lanes.vectors) + " vectors of them at once";
    if (lanes.scalar_loops > 0)
        text += " in " + std::to_string(lanes.loops) + " of " + std::to_string(lanes.loops + lanes.scalar_loops) +
                " loops over work-items, one has none: " + lanes.reason;
    for (const std::string& callee : lanes.serial_calls)
        text += ", one call for each lane of " + callee;
    return text + estimate;
}

workgroup::ArgumentSlot::Kind slot_kind(ArgumentKind kind) {
    switch (kind) {
    case ArgumentKind::local_pointer: return workgroup::ArgumentSlot::Kind::local_pointer;
    case ArgumentKind::image: return workgroup::ArgumentSlot::Kind::image;
    default: return workgroup::ArgumentSlot::Kind::value;
    }
}

llvm::CodeGenOptLevel level_of(Effort effort) {
    return effort == Effort::quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
}

class Generation {
public:
    explicit Generation(const KernelRequest& request, workgroup::Lanes lanes = workgroup::Lanes::where_they_pay)
        : request_(request), wanted_lanes_(lanes), machine_(MachinePool::get(), host(), level_of(request.effort)) {}

    Result<KernelObject> run() {
        set_value_names(context_);
        context_.setDiagnosticHandler(std::make_unique<LogDiagnostics>(diagnostics_));
        times_.begin("work-group function");
        POLDER_TRY(prepare());
        POLDER_TRY(check_needed());
        times_.end();
        times_.begin("cold functions");
        POLDER_TRY(separate_cold());
        times_.end();
        times_.begin("other optimisation");
        POLDER_TRY(request_.effort == Effort::quick
                       ? optimize_quickly(*module_, *machine_)
                       : optimize(*module_, *machine_, request_.module.options(), lanes_, times_));
        times_.end();
        POLDER_ASSIGN(final_module, run_bitcode_finalizer(std::move(module_)));
        module_ = std::move(final_module);
        times_.begin("machine code");
        POLDER_ASSIGN(object, emit_object(*module_, machine_.emitter()));
        times_.end();
        POLDER_LOG(timing, "kernel %s: %s", request_.kernel.name.c_str(), times_.text().c_str());
        if (!diagnostics_.empty())
            return fail(Status::out_of_resources, diagnostics_);
        result_.lanes = request_.effort == Effort::quick ? "quick code" : describe(lanes_);
        if (options::leave_compiler_temp_files())
            leave_files(request_.kernel.name, *module_, object);
        result_.stack_bytes = stack_bytes_of(object);
        size_t bytes = object.size();
        for (const ColdFunction& function : result_.cold_functions) {
            result_.stack_bytes += function.stack_bytes;
            bytes += function.object.size();
        }
        if (may_have_other_forms())
            result_.other_forms = other_forms(lanes_, bytes, has_same_results_);
        result_.object = std::move(object);
        return std::move(result_);
    }

    Result<workgroup::LaneReport> run_until_lanes() {
        POLDER_TRY(prepare());
        return std::move(lanes_);
    }

private:
    Result<void> prepare() {
        POLDER_TRY(read());
        POLDER_TRY(choose_other_lanes());
        for (llvm::Function& function : *module_)
            guard_divisions(function);
        POLDER_TRY(verified(*module_, "guarding divisions"));
        set_processor(*module_);
        // Built with -g -cl-opt-disable: the program is for a debugger, so its code is not optimised.
        if (kernel_->getSubprogram() != nullptr && !request_.module.options().is_optimized)
            machine_->setOptLevel(llvm::CodeGenOptLevel::None);
        POLDER_TRY(make_work_group_function());
        if (!lanes_.is_too_long || calls_long_functions_)
            return {};
        calls_long_functions_ = true;
        return prepare();
    }

    // Quick code has few cold functions, and a debugger shows those that are in the kernel's module.
    Result<void> separate_cold() {
        if (request_.effort == Effort::quick || !request_.module.options().is_optimized ||
            !module_->debug_compile_units().empty())
            return {};
        const auto make = [this](llvm::Module& module) -> Result<ColdFunction> {
            PassTimes times;  // of these passes, which are one part of the kernel's times
            POLDER_TRY(optimize(module, *machine_, request_.module.options(), {}, times));
            POLDER_ASSIGN(object, emit_object(module, machine_.emitter()));
            const uint64_t stack_bytes = stack_bytes_of(object);
            return ColdFunction{{}, std::move(object), stack_bytes};
        };
        POLDER_ASSIGN(functions, separate_cold_functions(*module_, options::use_lanes() ? "" : "loops", make,
                                                         request_.host_bitcode));
        result_.cold_functions = std::move(functions);
        return verified(*module_, "separating cold functions");
    }

    Result<void> read() {
        POLDER_ASSIGN(module, read_kernel(request_.host_bitcode, request_.kernel.name, context_));
        module_ = std::move(module);
        kernel_ = module_->getFunction(request_.kernel.name);
        // LLVM infers Cold where all paths call a cold built-in function. Cold functions are not inlined, but a kernel must be inlined.
        kernel_->removeFnAttr(llvm::Attribute::Cold);
        place_program_variables(*module_);
        has_same_results_ = may_have_other_forms() && has_same_results(*module_);
        return {};
    }

    // Whether this is planned code, and neither the program nor the user wants other code than the fastest.
    [[nodiscard]] bool may_have_other_forms() const {
        return request_.form == Form::planned && request_.effort == Effort::full &&
               request_.module.options().is_optimized && options::use_lanes() && !options::force_lanes() &&
               !request_.kernel.uses_sub_groups;
    }

    // Lanes that the planned code does not have. Explicit vectors that it keeps because lanes of their elements seem slower become lanes as they are: which is
    // faster is uncertain, and split ones most often are slower (decision 349). Where the planned code has lanes of whole vectors, they are split.
    Result<void> choose_other_lanes() {
        if (request_.form != Form::with_lanes)
            return {};
        KernelRequest planned = request_;
        planned.form = Form::planned;
        POLDER_ASSIGN(report, report_lanes(planned, workgroup::Lanes::where_they_pay));
        if (report.loops == 0 && report.keeps_vectors)
            other_lanes_ = workgroup::Lanes::with_whole_vectors;
        return {};
    }

    [[nodiscard]] workgroup::Lanes lanes_to_make() const {
        if (!request_.module.options().is_optimized || !options::use_lanes() || request_.form == Form::without_lanes)
            return workgroup::Lanes::none;
        if (request_.effort == Effort::quick)
            return workgroup::Lanes::later;
        if (request_.form == Form::with_lanes)
            return other_lanes_;
        return options::force_lanes() ? workgroup::Lanes::wherever_possible : wanted_lanes_;
    }

    Result<void> make_work_group_function() {
        workgroup::WorkGroupOptions options;
        options.name = "polder_work_group_" + request_.kernel.name;
        if (request_.groups) {
            options.local_size = request_.groups->size;
            options.ends = request_.groups->ends == WorkGroups::Ends::whole ? workgroup::WorkGroupOptions::Ends::whole
                                                                            : workgroup::WorkGroupOptions::Ends::ragged;
        }
        options.target_machine = &*machine_;
        options.sub_group_size = host().sub_group_size;
        options.lanes = lanes_to_make();
        options.vectors = vectors_of(request_.form);
        for (const KernelArgument& argument : request_.kernel.arguments)
            options.arguments.push_back({argument.offset, slot_kind(argument.kind)});
        fold_known_arguments(*kernel_, request_.known);
        if (request_.launches != Launches::any && !request_.kernel.uses_sub_groups &&
            options.lanes != workgroup::Lanes::none && options.lanes != workgroup::Lanes::later)
            kernel_->addFnAttr(workgroup::usual_launches_attribute,
                               request_.launches == Launches::whole_vectors ? workgroup::of_whole_vectors : "");
        calls_long_functions_ |= prefer_inlining(*module_) > instructions_in_lanes_max;
        if (calls_long_functions_ && options.lanes != workgroup::Lanes::none &&
            options.lanes != workgroup::Lanes::later)
            workgroup::call_long_functions(*kernel_, &*machine_);
        auto made = workgroup::make_work_group_function(*kernel_, options);
        if (!made)
            return fail(Status::out_of_resources, llvm::toString(made.takeError()));
        for (llvm::Function& function : *module_)
            if (!function.isDeclaration() && &function != made->function)
                function.setLinkage(llvm::GlobalValue::InternalLinkage);
        move_debug_information(*kernel_, *made->function);
        set_processor(*module_);
        lanes_ = std::move(made->lanes);
        result_.entry = made->function->getName().str();
        result_.local_bytes = made->local_bytes;
        result_.scratch_bytes_per_work_item = made->scratch_bytes_per_work_item;
        result_.private_bytes_per_work_item = made->private_bytes_per_work_item;
        result_.vector_width = made->vector_width;
        result_.lane_dimension = lanes_.dimension;
        result_.other_dimension = lanes_.other_dimension;
        result_.row_multiple = workgroup::row_multiple(*made->function);
        return verified(*module_, "making a work-group function");
    }

    const KernelRequest& request_;
    const workgroup::Lanes wanted_lanes_;
    PooledMachine machine_;
    std::string diagnostics_;
    PassTimes times_;
    workgroup::Lanes other_lanes_ = workgroup::Lanes::wherever_possible;  // in the form with_lanes
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
    llvm::Function* kernel_ = nullptr;
    workgroup::LaneReport lanes_;
    bool has_same_results_ = false;  // with and without lanes
    bool calls_long_functions_ = false;  // the kernel is too long to be compiled in lanes when they are inlined
    KernelObject result_;
};

}  // namespace

Result<KernelObject> generate_code(const KernelRequest& request) { return Generation{request}.run(); }

Result<workgroup::LaneReport> report_lanes(const KernelRequest& request, workgroup::Lanes lanes) {
    return Generation{request, lanes}.run_until_lanes();
}

}  // namespace polder::compiler
