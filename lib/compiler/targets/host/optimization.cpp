// LLVM's pipeline for the function of a whole work-group, and after it the passes whose work the pipeline would undo or misunderstand.
#include "optimization.h"

#include "analyses.h"
#include "lower.h"
#include "module/verified.h"
#include "pass_gate.h"
#include "targets/host/instructions/any_element.h"
#include "targets/host/instructions/class_ranges.h"
#include "targets/host/instructions/constant_division.h"
#include "targets/host/instructions/directed_halves.h"
#include "targets/host/instructions/even_and_odd.h"
#include "targets/host/instructions/extremum_checks.h"
#include "targets/host/instructions/fused_products.h"
#include "targets/host/instructions/half_rounding.h"
#include "targets/host/instructions/halves_as_words.h"
#include "targets/host/instructions/huge_reciprocals.h"
#include "targets/host/instructions/joined_elements.h"
#include "targets/host/instructions/lane_addresses.h"
#include "targets/host/instructions/lane_products.h"
#include "targets/host/instructions/logarithm_limits.h"
#include "targets/host/instructions/mask_shuffles.h"
#include "targets/host/instructions/mask_words.h"
#include "targets/host/instructions/masked_memory.h"
#include "targets/host/instructions/masked_minimums.h"
#include "targets/host/instructions/minimum_zeros.h"
#include "targets/host/instructions/narrow_indices.h"
#include "targets/host/instructions/native_roots.h"
#include "targets/host/instructions/number_parts.h"
#include "targets/host/instructions/odd_sums.h"
#include "targets/host/instructions/power_scaling.h"
#include "targets/host/instructions/reciprocals.h"
#include "targets/host/instructions/register_need.h"
#include "targets/host/instructions/register_tables.h"
#include "targets/host/instructions/scattered_loads.h"
#include "targets/host/instructions/skipped_results.h"
#include "targets/host/instructions/sum_order.h"
#include "targets/host/instructions/table_vectors.h"
#include "targets/host/instructions/vector_division.h"
#include "targets/host/loops/branching_loops.h"
#include "targets/host/loops/expected_places.h"
#include "targets/host/loops/finished_loops.h"
#include "targets/host/loops/hoisted_loads.h"
#include "targets/host/loops/merge_steps.h"
#include "targets/host/loops/narrow_wraps.h"
#include "targets/host/loops/paired_iterations.h"
#include "targets/host/loops/passed_checks.h"
#include "targets/host/loops/range_checks.h"
#include "targets/host/loops/short_loops.h"
#include "targets/host/loops/stack_tops.h"
#include "targets/host/workgroup/vectorizer/analysis/parallel_accesses.h"
#include "targets/host/workgroup/vectorizer/code/rare_calls.h"
#include "targets/host/workgroup/vectorizer/preparation/loop_alignment.h"
#include "targets/host/workgroup/vectorizer/preparation/loop_divisions.h"
#include "uncalled_functions.h"

#include <base/options.h>
#include <compiler/optional_work.h>

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>

namespace polder::compiler {
namespace {

// A program may define functions with the names of the C library. LLVM may assume the C library's meaning only for the symbols that
// the loader offers.
llvm::TargetLibraryInfoImpl known_library(const llvm::TargetMachine& machine) {
    llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
    library.disableAllFunctions();
    for (const llvm::LibFunc function : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset})
        library.setAvailable(function);
    return library;
}

}  // namespace

Result<void> check_needed() {
    if (OptionalWork::is_unneeded())
        return fail(Status::out_of_resources, "the code is not needed any more");
    return {};
}

Result<void> optimize(llvm::Module& module, llvm::TargetMachine& machine, const CodeOptions& options,
                      const workgroup::LaneReport& lanes, PassTimes& times) {
    OptimizationGate gate(module, lanes.loops > 0);
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = options.is_optimized && polder::options::use_lanes();
    tuning.SLPVectorization = options.is_optimized && gate.joins_statements(lanes.loops > 0);
    tuning.LoopInterleaving = options.is_optimized;
    tuning.ForgetAllSCEVInLoopUnroll = gate.forgets_all_loops();
    llvm::PassInstrumentationCallbacks callbacks;
    times.watch(callbacks);
    callbacks.registerShouldRunOptionalPassCallback([&gate](llvm::StringRef pass, const llvm::Any& what) {
        if (OptionalWork::is_unneeded())
            return false;
        if (const auto* const loop = llvm::any_cast<const llvm::Loop*>(&what))
            return gate.should_run(pass, **loop);
        const auto* const function = llvm::any_cast<const llvm::Function*>(&what);
        if (function != nullptr && pass == "InstCombinePass" && !gate.should_combine(**function))
            return false;
        return function == nullptr ? gate.should_run(pass) : gate.should_run(pass, **function);
    });
    llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
    workgroup::add_loop_alignment_pass(builder);
    if (lanes.loops == 0)
        add_branching_loops_pass(builder);
    workgroup::add_loop_division_pass(builder);
    add_finished_loops_pass(builder, OptimizationGate::loops_max);
    workgroup::add_parallel_access_pass(builder);
    add_narrow_wraps_pass(builder, gate.should_run("LoopLoadEliminationPass"));
    Analyses analyses;
    analyses.functions.registerPass([&machine] { return llvm::TargetLibraryAnalysis(known_library(machine)); });
    analyses.register_all(builder);
    keep_scattered_loads(callbacks, analyses.functions, machine);
    const auto level = options.is_optimized                                   ? llvm::OptimizationLevel::O3
                       : machine.getOptLevel() == llvm::CodeGenOptLevel::None ? llvm::OptimizationLevel::O0
                                                                              : llvm::OptimizationLevel::O1;
    if (options.is_optimized && lanes.loops == 0)
        for (llvm::Function& function : module)
            if (!function.isDeclaration())
                copy_without_passed_checks(function, analyses.functions);
    {
        const UncalledFunctions uncalled(module);
        builder.buildPerModuleDefaultPipeline(level).run(module, analyses.modules);
    }
    POLDER_TRY(check_needed());
    for (llvm::Function& function : module) {
        if (function.isDeclaration())
            continue;
        const llvm::TargetTransformInfo target = machine.getTargetTransformInfo(function);
        if (options.is_optimized) {
            workgroup::load_in_loops(function, analyses.functions);
            join_range_checks(function, machine);
            move_out_lane_products(function);
            choose_where_computed(function);
            look_up_vectors(function, machine);
            ask_whole_vectors(function, machine);
            compare_classes(function, machine);
            permute_small_tables(function, machine);
            if (lanes.loops == 0) {
                keep_stack_tops(function);
                choose_merge_steps(function, analyses.functions);
            }
        }
        if (options.is_optimized)
            narrow_gather_indices(function);
        lower_masked_memory(function, target,
                            has_slow_gathers(machine) ? ByteGathers::one_by_one : ByteGathers::in_words);
        if (options.is_optimized)
            mask_minimums(function, machine);
        ignore_order_of_zeros(function);
        round_halves_as_floats(function, machine);
        round_halves_to_even(function);
        if (options.is_optimized)
            order_sums(function, target);
        if (options.is_optimized)
            expect_places(function);
        flush_huge_reciprocals(function, machine);
        estimate_native_roots(function, machine);
        divide_by_estimates(function, machine);
        if (options.is_optimized) {
            shuffle_before_comparing(function);
            divide_vectors(function);
            multiply_for_divisions(function, machine);
            separate_even_and_odd(function, even_and_odd_target(function, machine));
        }
        split_numbers_by_instructions(function, machine);
        scale_by_instructions(function, machine);
        choose_limits_of_logarithms(function, machine);
        convert_to_directed_halves(function, machine);
        round_sums_to_odd(function, machine);
        compute_fused_products(function, machine);
        convert_halves_as_words(function, machine);
        pass_masks_as_words(function, machine);
        if (options.is_optimized) {
            check_extrema(function);
            join_elements_as_numbers(function);
            take_addresses_first(function);
            pair_iterations(function, target);
            align_short_loops(function);
        }
        if (options.is_optimized && may_store_registers(function))
            function.addFnAttr("stackrealign");
    }
    return verified(module, "the last passes");
}

}  // namespace polder::compiler
