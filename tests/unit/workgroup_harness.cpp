#include "workgroup_harness.h"

#include "analyses.h"
#include "targets/host/instructions/constant_loads.h"
#include "targets/host/instructions/fused_products.h"
#include "targets/host/instructions/lane_products.h"
#include "targets/host/instructions/mask_words.h"
#include "targets/host/instructions/register_tables.h"
#include "targets/host/instructions/table_vectors.h"
#include "targets/host/loops/hoisted_loads.h"
#include "targets/host/loops/merge_steps.h"
#include "targets/host/loops/narrow_wraps.h"
#include "targets/host/loops/range_checks.h"
#include "targets/host/optimization.h"
#include "targets/host/quick_passes.h"
#include "targets/host/workgroup/frame/inliner.h"
#include "targets/host/workgroup/frame/usual_launches.h"
#include "targets/host/workgroup/vectorizer/analysis/parallel_accesses.h"
#include "targets/host/workgroup/vectorizer/code/rare_calls.h"
#include "targets/host/workgroup/vectorizer/preparation/loop_alignment.h"
#include "targets/host/workgroup/vectorizer/preparation/loop_divisions.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/IPO/Internalize.h>
#include <unistd.h>

namespace polder::compiler::workgroup::test {

bool has_512_bits() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

namespace {

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string compile(const std::string& source) {
    char directory[] = "/tmp/polder-workgroup-XXXXXX";
    if (!mkdtemp(directory))
        return {};
    const std::string base = directory;
    std::ofstream(base + "/k.cl") << source;
    const std::string command = std::string(POLDER_CLANG) +
                                " -cl-std=CL3.0 -target spir64 -O0 -Xclang -disable-O0-optnone -Xclang "
                                "-fdeclare-opencl-builtins -ffp-contract=off -w"
                                " -emit-llvm -c -x cl " +
                                base + "/k.cl -o " + base + "/k.bc";
    std::string bitcode;
    if (std::system(command.c_str()) == 0)
        bitcode = read_file(base + "/k.bc");
    else
        ADD_FAILURE() << "does not compile:\n" << source;
    unlink((base + "/k.cl").c_str());
    unlink((base + "/k.bc").c_str());
    rmdir(directory);
    return bitcode;
}

llvm::orc::JITTargetMachineBuilder machine_builder(const std::string& processor) {
    auto builder = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
    builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
    if (!processor.empty()) {
        builder.setCPU(processor);
        builder.getFeatures() = llvm::SubtargetFeatures();
    }
    return builder;
}

void link_builtins(llvm::Module& module) {
    const auto is_known = [](const llvm::Function& function) {
        return !function.isDeclaration() || function.isIntrinsic() || work_item_function(function);
    };
    if (llvm::all_of(module, is_known))
        return;
    llvm::SMDiagnostic problem;
    auto builtins = llvm::getLazyIRFileModule(POLDER_LIBCLC, problem, module.getContext());
    if (!builtins)
        return;
    builtins->setDataLayout(module.getDataLayout());
    builtins->setTargetTriple(module.getTargetTriple());
    llvm::Linker::linkModules(module, std::move(builtins), llvm::Linker::Flags::LinkOnlyNeeded);
}

// As kernels are compiled. Returns what failed.
std::string optimise_fully(llvm::Module& module, llvm::TargetMachine& machine, const LaneReport& lanes) {
    PassTimes times;
    const Result<void> done = optimize(module, machine, {}, lanes, times);
    return done ? std::string{} : std::string{done.error().detail()};
}

// The passes that tests of the vectorizer ask about.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, bool has_lanes) {
    Analyses analyses;
    llvm::PassBuilder builder(&machine);
    add_loop_alignment_pass(builder);
    add_loop_division_pass(builder);
    add_parallel_access_pass(builder);
    add_narrow_wraps_pass(builder, true);
    analyses.register_all(builder);
    // Other kernels of the module first: the pipeline would optimise them before it finds that they are not used.
    llvm::GlobalDCEPass().run(module, analyses.modules);
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, analyses.modules);
    for (llvm::Function& function : module)
        if (!function.isDeclaration()) {
            load_in_loops(function, analyses.functions);
            join_range_checks(function, machine);
            move_out_lane_products(function);
            look_up_vectors(function, machine);
            permute_small_tables(function, machine);
            if (!has_lanes)
                choose_merge_steps(function, analyses.functions);
            compute_fused_products(function, machine);
            pass_masks_as_words(function, machine);
        }
}

void give_target_features(llvm::Module& module, const llvm::TargetMachine& machine) {
    for (llvm::Function& function : module) {
        function.addFnAttr("target-cpu", machine.getTargetCPU());
        function.addFnAttr("target-features", features_of(function, machine.getTargetFeatureString()));
        function.removeFnAttr("frame-pointer");
    }
}

}  // namespace

struct Compiled::State {
    explicit State(const std::string& processor)
        : builder(machine_builder(processor)), machine(llvm::cantFail(builder.createTargetMachine())) {}

    llvm::orc::JITTargetMachineBuilder builder;
    std::unique_ptr<llvm::TargetMachine> machine;
    std::vector<std::unique_ptr<llvm::orc::LLJIT>> jits;
};

Compiled::Compiled(const std::string& source, const std::string& processor) {
    static const bool initialised = [] {
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
        return true;
    }();
    (void)initialised;
    state_ = std::make_unique<State>(processor);
    bitcode_ = compile(source);
}

Compiled::~Compiled() = default;

std::string Compiled::prepare(const std::string& kernel, bool specialised, std::array<uint64_t, 3> local_size,
                              WorkGroupOptions::Ends ends, Lanes lanes) {
    if (bitcode_.empty())
        return "no bitcode";
    auto context = std::make_unique<llvm::LLVMContext>();
    auto buffer = llvm::MemoryBuffer::getMemBuffer(bitcode_, "kernel", false);
    auto parsed = llvm::parseBitcodeFile(*buffer, *context);
    if (!parsed)
        return llvm::toString(parsed.takeError());
    std::unique_ptr<llvm::Module> module = std::move(*parsed);
    link_builtins(*module);
    mark_constant_loads(*module);
    module->setDataLayout(state_->machine->createDataLayout());
    module->setTargetTriple(state_->machine->getTargetTriple());
    give_target_features(*module, *state_->machine);

    llvm::Function* function = module->getFunction(kernel);
    if (!function)
        return "no such kernel";
    for (llvm::Function& callee : *module)
        if (callee.getName().starts_with("called_"))
            callee.addFnAttr(called_attribute);
    if (function->getName().starts_with("usual_"))
        function->addFnAttr(usual_launches_attribute,
                            function->getName().starts_with("usual_vectors_") ? of_whole_vectors : "");
    WorkGroupOptions options;
    options.name = "work_group";
    options.arguments = pack_arguments(*function);
    options.target_machine = state_->machine.get();
    if (specialised)
        options.local_size = local_size;
    options.ends = ends;
    options.lanes = lanes;
    options.vectors = vectors_;
    auto made = make_work_group_function(*function, options);
    if (!made)
        return llvm::toString(made.takeError());
    result_ = *made;
    const uint64_t multiple_of_rows = row_multiple(*made->function);
    give_target_features(*module, *state_->machine);
    llvm::internalizeModule(*module, [](const llvm::GlobalValue& value) { return value.getName() == "work_group"; });
    if (const char* dump = std::getenv("POLDER_TEST_DUMP")) {
        std::error_code error;
        llvm::raw_fd_ostream out(dump, error);
        result_.function->print(out);
    }
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    if (llvm::verifyModule(*module, &stream))
        return "invalid IR: " + problem;
    const bool is_quick = lanes == Lanes::later;
    if (is_quick && !optimize_quickly(*module, *state_->machine))
        return "the passes for quick code failed";
    if (!is_quick && !runs_all_passes_)
        optimise(*module, *state_->machine, result_.lanes.loops > 0);
    if (!is_quick && runs_all_passes_)
        if (std::string failed = optimise_fully(*module, *state_->machine, result_.lanes); !failed.empty())
            return failed;
    optimised_.clear();
    llvm::raw_string_ostream text(optimised_);
    result_.function->print(text);
    if (has_usual_launches(*result_.function))
        text << "; rows of multiples of " << multiple_of_rows;
    if (const char* dump = std::getenv("POLDER_TEST_DUMP")) {
        std::error_code error;
        llvm::raw_fd_ostream out(std::string(dump) + ".opt", error);
        module->print(out, nullptr);
    }
    result_.function = nullptr;

    llvm::orc::JITTargetMachineBuilder builder = state_->builder;
    if (is_quick)
        builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
    auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create();
    if (!jit)
        return llvm::toString(jit.takeError());
    if (auto error = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))))
        return llvm::toString(std::move(error));
    auto symbol = (*jit)->lookup("work_group");
    if (!symbol)
        return llvm::toString(symbol.takeError());
    function_ = symbol->toPtr<WorkGroupFunction>();
    state_->jits.push_back(std::move(*jit));
    return {};
}

void Compiled::run(const Range& range, const Arguments& arguments) const {
    LaunchContext context{};
    uint64_t groups = 1;
    uint64_t items = 1;
    for (size_t d = 0; d < 3; ++d) {
        context.global_offset[d] = range.offset[d];
        context.global_size[d] = range.global[d];
        context.local_size[d] = range.local[d];
        context.num_groups[d] = (range.global[d] + range.local[d] - 1) / range.local[d];
        groups *= context.num_groups[d];
        items *= range.local[d];
    }
    context.work_dim = range.dimensions;

    std::vector<std::byte> bytes = arguments.bytes_;
    uint64_t local_bytes = (result_.local_bytes + 127) / 128 * 128;
    for (const Arguments::Local& local : arguments.locals_) {
        std::memcpy(bytes.data() + local.at, &local_bytes, 8);
        local_bytes += (local.size + 127) / 128 * 128;
    }
    const auto allocate = [](uint64_t size) {
        return std::unique_ptr<std::byte, decltype(&std::free)>(
            static_cast<std::byte*>(std::aligned_alloc(128, (size + 255) / 128 * 128)), &std::free);
    };
    const auto packed = allocate(bytes.size());
    std::memcpy(packed.get(), bytes.data(), bytes.size());
    const auto local_memory = allocate(local_bytes);
    const auto scratch = allocate(result_.scratch_bytes_per_work_item * items + 4096);
    std::memset(scratch.get(), 0xa5, result_.scratch_bytes_per_work_item * items + 4096);
    std::memset(local_memory.get(), 0x5a, local_bytes);
    for (uint64_t group = 0; group < groups; ++group) {
        const uint64_t id[3] = {group % context.num_groups[0], group / context.num_groups[0] % context.num_groups[1],
                                group / context.num_groups[0] / context.num_groups[1]};
        function_(packed.get(), &context, id, local_memory.get(), scratch.get());
    }
}

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

}  // namespace polder::compiler::workgroup::test
