// Runs the steps that workgroup.h lists, in their order.
#include "workgroup.h"

#include "machine/zen.h"
#include "targets/host/workgroup/frame/abi.h"
#include "targets/host/workgroup/frame/group_order.h"
#include "targets/host/workgroup/frame/id_limits.h"
#include "targets/host/workgroup/frame/lowering.h"
#include "targets/host/workgroup/frame/natural_loops.h"
#include "targets/host/workgroup/frame/opaque_sizes.h"
#include "targets/host/workgroup/frame/private_volatiles.h"
#include "targets/host/workgroup/frame/simplify.h"
#include "targets/host/workgroup/frame/usual_launches.h"
#include "targets/host/workgroup/regions/common_steps.h"
#include "targets/host/workgroup/regions/cuts.h"
#include "targets/host/workgroup/regions/late_values.h"
#include "targets/host/workgroup/regions/work_item_loops.h"
#include "targets/host/workgroup/vectorizer/analysis/item_blocks.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/vectorizer/code/lane_code.h"
#include "targets/host/workgroup/vectorizer/estimates/lane_dimension.h"
#include "targets/host/workgroup/vectorizer/rare_lanes.h"
#include "targets/host/workgroup/vectorizer/vector_functions.h"
#include "targets/host/workgroup/vectorizer/vectorizer.h"
#include "targets/host/workgroup/work_items/hoisting.h"
#include "targets/host/workgroup/work_items/local_atomics.h"
#include "targets/host/workgroup/work_items/unchanging_atomics.h"
#include "targets/host/workgroup/work_items/uniform_division.h"
#include "targets/host/workgroup/work_items/uniformity.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

// The uniformity of a function that is about to change.
Uniformity analyse(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    return Uniformity(function, loops);
}

// Lanes of 32 bits in the target's registers, also where its tuning prefers narrower ones.
uint32_t vector_width(const llvm::Function& function, llvm::TargetMachine* target) {
    if (!target)
        return 1;
    if (target->getTargetTriple().isX86() && target->getMCSubtargetInfo()->checkFeatures("+avx512f"))
        return 16;
    const auto info = target->getTargetTransformInfo(function);
    const auto bits = info.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue();
    return static_cast<uint32_t>(std::max<uint64_t>(bits / 32, 1));
}

// LLVM's cost model gives gathers the same cost on all processors. `fast-gather` is the feature by which LLVM's code generator decides about them.
// AMD's processors with AVX-512 do not have it.
Gathers gathers_of(llvm::TargetMachine* target) {
    const auto has = [&](const char* features) { return target->getMCSubtargetInfo()->checkFeatures(features); };
    if (!target || !target->getTargetTriple().isX86() || !has("+avx512f"))
        return Gathers::slow;
    if (has("+fast-gather"))
        return Gathers::quick;
    return is_zen(*target) ? Gathers::quick_for_all : Gathers::slow;
}

Masks masks_of(llvm::TargetMachine* target) {
    const bool has_registers =
        target && target->getTargetTriple().isX86() && target->getMCSubtargetInfo()->checkFeatures("+avx512vl");
    return has_registers ? Masks::cheap : Masks::dear;
}

Pages pages_of(llvm::TargetMachine* target) { return target && is_zen(*target) ? Pages::dear : Pages::cheap; }

// Processors other than AMD's start two loads and two other instructions on 512 bits in each cycle, a Zen 4 twice as many loads.
Loads loads_of(llvm::TargetMachine* target) {
    const bool has_512_bits =
        target && target->getTargetTriple().isX86() && target->getMCSubtargetInfo()->checkFeatures("+avx512f");
    return has_512_bits && !is_zen(*target) ? Loads::scarce : Loads::plenty;
}

// Every path has to reach the end of the loop over a sub-group's work-items.
void return_where_unreachable(llvm::Function& function) {
    for (llvm::BasicBlock& block : function)
        if (auto* end = llvm::dyn_cast<llvm::UnreachableInst>(block.getTerminator())) {
            llvm::ReturnInst::Create(function.getContext(), nullptr, end->getIterator());
            end->eraseFromParent();
        }
}

// The first block in post-order (so the last of its cycle) from which no path leads to a return; null when there is none.
llvm::BasicBlock* end_of_endless_loop(llvm::Function& function) {
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> returning;
    llvm::SmallVector<const llvm::BasicBlock*> todo;
    for (const llvm::BasicBlock& block : function)
        if (llvm::isa<llvm::ReturnInst>(block.getTerminator()))
            todo.push_back(&block);
    while (!todo.empty()) {
        const llvm::BasicBlock* const block = todo.pop_back_val();
        if (returning.insert(block).second)
            todo.append(llvm::pred_begin(block), llvm::pred_end(block));
    }
    for (llvm::BasicBlock* block : llvm::post_order(&function))
        if (!returning.contains(block))
            return block;
    return nullptr;
}

// Gives a loop without an exit an exit that is never taken: it compares two arguments that never have the same address, which LLVM's passes do
// not know. The program may have such a loop, and LLVM makes one of a loop that begins under a condition that is never true.
void give_endless_loops_an_end(llvm::Function& function) {
    while (llvm::BasicBlock* const block = end_of_endless_loop(function)) {
        llvm::BasicBlock* const next = block->splitBasicBlock(block->getTerminator(), "endless");
        auto* const end = llvm::BasicBlock::Create(function.getContext(), "never", &function);
        llvm::ReturnInst::Create(function.getContext(), end);
        block->getTerminator()->eraseFromParent();
        llvm::IRBuilder<> at(block);
        at.CreateCondBr(at.CreateICmpEQ(function.getArg(abi::context), function.getArg(abi::group_id)), end, next);
    }
}

// Gives each value that is used after its loop a phi there. A value that is uniform within a loop differs after it between work-items
// that leave the loop at different times. Uniformity reports the phi as varying, so a barrier after the loop keeps it for each work-item.
void close_loops(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* const loop : loops)
        llvm::formLCSSARecursively(*loop, dominators, &loops, nullptr);
}

bool is_loop_over_work_items(const llvm::BasicBlock& header) {
    return llvm::any_of(llvm::predecessors(&header), [](const llvm::BasicBlock* latch) {
        llvm::MDNode* const id = latch->getTerminator()->getMetadata(llvm::LLVMContext::MD_loop);
        return id && llvm::any_of(std::array{work_item_loop_tag, whole_sub_group_tag, sub_group_tag},
                                  [&](const char* tag) { return llvm::findOptionMDForLoopID(id, tag) != nullptr; });
    });
}

// Whether code behind the prologue divides numbers into blocks.
bool divides_into_blocks(llvm::Function& function) {
    llvm::SmallVector<llvm::BasicBlock*> body;
    for (llvm::BasicBlock& block : llvm::drop_begin(function))
        body.push_back(&block);
    return have_divisions_into_blocks(body);
}

// Whether the work-group has so few work-items that computing a reciprocal for all of them would not pay.
bool are_few(const Extent& local_size) {
    constexpr uint64_t few = 8;
    uint64_t count = 1;
    for (const llvm::Value* size : local_size) {
        const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(size);
        if (!constant)
            return false;
        count *= constant->getZExtValue();
    }
    return count < few;
}

}  // namespace

llvm::Expected<WorkGroupResult> make_work_group_function(llvm::Function& kernel, const WorkGroupOptions& options) {
    llvm::Expected<LoweredKernel> lowered = lower_kernel(kernel, options);
    if (!lowered)
        return lowered.takeError();
    llvm::Function& function = *lowered->function;
    forget_volatile_constants(function);
    const IdLimits limits(function);
    divide_without_signs(function, limits);  // so that quotients and remainders are joined
    simplify_body(function, options.target_machine);
    divide_without_signs(function, limits);  // of variables that were on the stack
    restore_prologue(*lowered);
    mark_local_atomics(function, *function.getArg(abi::local_memory));
    const uint32_t register_words = vector_width(function, options.target_machine);
    uint32_t width = options.lanes == Lanes::none ? 1 : register_words;
    if (options.lanes != Lanes::none && options.lanes != Lanes::later)
        prepare_vector_functions(function, register_words, options.target_machine);
    unsigned other_dimension = 0;
    if (lowered->sub_group_size == 0) {  // sub-groups follow the linear local id
        const LoopOrder order = choose_loop_order(function, lowered->local_size, width);
        lowered->order = order.dimensions;
        other_dimension = order.with_known_size;
        follow_lanes_with_groups(*lowered);
    }

    if (lowered->sub_group_size > 0) {
        return_where_unreachable(function);
        give_endless_loops_an_end(function);
    }
    Cuts cuts = split_at_barriers(function);
    if (has_loops_around(function, cuts))
        separate_common_steps(function, cuts, analyse(function));
    if (!cuts.empty()) {
        close_loops(function);
        compute_late(function, *lowered->prologue, cuts, analyse(function));
    }
    if (!are_few(lowered->local_size) && has_variable_divisions(function))
        divide_by_reciprocals(function, *lowered->prologue, analyse(function));
    const Uniformity uniformity = analyse(function);
    hoist_uniform_values(function, *lowered->prologue, uniformity);
    place_cuts(function, uniformity, cuts);
    if (divides_into_blocks(function))
        promise_first_ids(*lowered);
    promise_whole_rows(*lowered);
    const RegionStatistics statistics = form_work_item_loops(
        *lowered, uniformity, cuts, options.lanes == Lanes::none ? IdleLoops::executed : IdleLoops::skipped);
    if (!cuts.empty())
        make_loops_natural_within(is_loop_over_work_items, function, options.target_machine);
    if (const auto* size = llvm::dyn_cast<llvm::ConstantInt>(lowered->local_size[lowered->order[0]]))
        width = static_cast<uint32_t>(std::min<uint64_t>(width, std::bit_floor(size->getZExtValue())));
    LaneReport report;
    SubGroupReport sub_groups;
    with_analyses(options.target_machine, [&](llvm::FunctionAnalysisManager& analyses) {
        if (lowered->sub_group_size > 0)
            sub_groups = vectorize_sub_group_loops(
                function, {lowered->sub_group_size, permutes_of(options.target_machine)}, analyses);
        if (options.lanes == Lanes::later)
            return;
        const LaneTarget target{gathers_of(options.target_machine),  masks_of(options.target_machine),
                                permutes_of(options.target_machine), register_words,
                                pages_of(options.target_machine),    loads_of(options.target_machine)};
        report = vectorize_work_item_loops(function, width, options, target, sub_groups, analyses);
        report.serial_calls.merge(vectorize_functions(*function.getParent(), target, options.lanes, analyses));
        vectorize_rare_calls(*function.getParent(), register_words, permutes_of(options.target_machine), analyses);
    });
    replace_local_atomics(function);
    skip_unchanging_atomics(function);
    forget_any_work_item(*function.getParent());
    hide_sizes(function);
    hide_repeated_questions(function);
    if (!sub_groups.obstacle.empty())
        return llvm::createStringError("kernel '" + kernel.getName() +
                                       "': sub-group functions cannot be compiled: " + sub_groups.obstacle);
    report.loops += sub_groups.loops;
    if (sub_groups.loops > 0)
        report.width = std::max(report.width, lowered->sub_group_size);

    WorkGroupResult result;
    result.function = &function;
    result.local_bytes = lowered->local_bytes;
    result.scratch_bytes_per_work_item = statistics.scratch_bytes_per_work_item;
    result.private_bytes_per_work_item = statistics.private_bytes_per_work_item;
    result.vector_width = std::max({width, lowered->sub_group_size, 1U});
    result.has_barriers = !cuts.empty();
    report.dimension = lowered->order[0];
    report.other_dimension = report.loops == 0 ? other_dimension : 0;
    result.lanes = std::move(report);
    return result;
}

}  // namespace polder::compiler::workgroup
