// The driver of the vectorizer. Each marked loop is planned (lane_plan), its shapes are analysed (lane_shape), its cost is compared
// (lane_cost), and its vector form is emitted (vector_loop). A function with explicit vectors is copied first, and has lanes in two forms: with
// whole and with split vectors. The form that gains most remains, or the copy, when lanes gain less than the vectors save.
#include "vectorizer.h"

#include "targets/host/workgroup/frame/usual_launches.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/vectorizer/code/vector_loop.h"
#include "targets/host/workgroup/vectorizer/estimates/explicit_vectors.h"
#include "targets/host/workgroup/vectorizer/estimates/interleaving.h"
#include "targets/host/workgroup/vectorizer/estimates/lane_chains.h"
#include "targets/host/workgroup/vectorizer/estimates/lane_cost.h"
#include "targets/host/workgroup/vectorizer/estimates/lane_work.h"
#include "targets/host/workgroup/vectorizer/estimates/own_rows.h"
#include "targets/host/workgroup/vectorizer/estimates/shapes_that_pay.h"
#include "targets/host/workgroup/vectorizer/estimates/unchecked_iterations.h"
#include "targets/host/workgroup/vectorizer/preparation/canonical_form.h"
#include "targets/host/workgroup/vectorizer/preparation/copied_function.h"
#include "targets/host/workgroup/vectorizer/preparation/element_changes.h"
#include "targets/host/workgroup/vectorizer/preparation/exchange_loops.h"
#include "targets/host/workgroup/vectorizer/preparation/idle_items.h"
#include "targets/host/workgroup/vectorizer/preparation/index_checks.h"
#include "targets/host/workgroup/vectorizer/preparation/left_over_items.h"
#include "targets/host/workgroup/vectorizer/preparation/passing_items.h"
#include "targets/host/workgroup/vectorizer/preparation/plain_operations.h"
#include "targets/host/workgroup/vectorizer/preparation/prepared_loop.h"
#include "targets/host/workgroup/vectorizer/preparation/row_loops.h"
#include "targets/host/workgroup/vectorizer/preparation/structure_lengths.h"
#include "targets/host/workgroup/vectorizer/preparation/unfinished_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>
#include <numeric>

namespace polder::compiler::workgroup {

namespace {

// Whether LLVM could merge accesses of the loop across another one that must stay between them. Its loop vectorizer forms interleave
// groups, which move accesses whose addresses differ by a constant. When a loop's accesses are marked as parallel, it checks
// no dependences. But the mark says that different iterations are independent, not the accesses of one iteration.
bool may_merge_across_others(const llvm::Loop& loop) {
    llvm::DenseMap<const llvm::Value*, llvm::SmallVector<int64_t, 4>> offsets;  // of accesses by base
    bool has_store = false;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block) {
            const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
            if (address == nullptr)
                continue;
            const llvm::DataLayout& layout = instruction.getDataLayout();
            llvm::APInt offset(layout.getIndexTypeSizeInBits(address->getType()), 0);
            offsets[address->stripAndAccumulateConstantOffsets(layout, offset, true)].push_back(offset.getSExtValue());
            has_store |= llvm::isa<llvm::StoreInst>(instruction);
        }
    return has_store && offsets.size() > 1 &&
           llvm::any_of(offsets, [](const auto& entry) { return !llvm::all_equal(entry.second); });
}

// Marks a loop as done. The rest of a loop with lanes, and a loop for which lanes do not pay, LLVM leaves too: its cost model underestimates gathers.
enum class LeftToLlvm : uint8_t { no, yes };
void retire(llvm::Loop& loop, LeftToLlvm left) {
    llvm::LLVMContext& context = loop.getHeader()->getContext();
    llvm::SmallVector<llvm::StringRef, 2> removed{work_item_loop_tag};
    if (left == LeftToLlvm::yes && may_merge_across_others(loop))
        removed.push_back("llvm.loop.parallel_accesses");
    llvm::SmallVector<llvm::MDNode*, 1> added;
    if (left == LeftToLlvm::no)
        added.push_back(llvm::MDNode::get(
            context, {llvm::MDString::get(context, "llvm.loop.isvectorized"),
                      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), 1))}));
    loop.setLoopID(llvm::makePostTransformationMetadata(context, loop.getLoopID(), removed, added));
}

// Lanes must gain this much more than explicit vectors save: a shuffle of bytes counts as one instruction, but takes several without VBMI.
constexpr double least_gain = 1.1;

// Whole vectors must take this part of the time of split ones: the estimates of both are right within a tenth. Without loops LLVM also cancels and
// combines what the estimate does not see.
constexpr double margin_of_work = 0.9, margin_without_loops = 0.6;

// Vectors of eight floats that fill half of a register gain almost as much as lanes, but lanes need half of their instructions. Where the kernel has
// loops, such vectors are also fewer chains, whose latency nothing hides.
constexpr double part_of_instructions = 0.6;

// Loops over windows count half as often in the estimate of lanes (window_loops.h). Where they do in what vectors save, too, lanes must be estimated at less
// than this: sums of a picture's pixels take twice the estimated time in 16 lanes, and as long as without lanes in 8, of which 0.37 is expected.
constexpr double part_in_windows = 0.3;

// Explicit vectors that save less than this part of a work-item's instructions do not decide about lanes: the kernel loads them, as the places of
// atoms, and computes with their elements.
constexpr double least_part_saved = 1.0 / 32;

// How often a loop over work-items is assumed to run, because of the kernel's loops around it.
double weight_of_loop(const llvm::Loop& loop) { return weight_of_block(kernel_loops_around(loop)); }

// Beyond this many instructions LLVM takes minutes over 16 lanes of what it compiles in seconds for one work-item (hashcat's scrypt).
// Such loops are not left to its own vectorizer either, which infers the type of each value by a recursion over all values before it.
constexpr size_t lane_instructions_max = 12000;
constexpr double winners_part_max = 0.25;  // of the time without lanes
constexpr const char* too_long = "the code is too long to be compiled in lanes";

size_t instruction_count(const llvm::Loop& loop) {
    const auto add = [](size_t count, const llvm::BasicBlock* block) { return count + block->size(); };
    return std::accumulate(loop.block_begin(), loop.block_end(), size_t{0}, add);
}

// How many vectors of work-items are tested together, and skipped when none of the work-items has something to do.
constexpr unsigned vectors_that_ask = 4;

struct Outcome {
    enum class Kind : uint8_t { vectorized, does_not_pay, not_understood } kind;
    double gain = 0;  // of one work-item, in instructions
    std::string reason;
    bool is_too_long = false;
    std::set<std::string> serial_calls;
    unsigned width = 0;
    unsigned vectors = 1;  // at once
    double work = 0, masks = 0;  // of one work-item, in vector instructions (LaneWork), and the wait for chains
    double one_by_one = 0;  // of one work-item without lanes and explicit vectors, in instructions
    double in_lanes = 0;  // the same with lanes
    double structures = 0;  // the part of it that loads structures which are apart
    double waited = 0;  // by one work-item with explicit vectors for the chains of its loops, in instructions
    // The loop is to be tried again: the work-items left over by several vectors at once may fill one vector, or inner loops were unrolled.
    bool comes_again = false;
    // The work-items that are left over by whole vectors are to be tried, under a mask (left_over_items.h).
    bool rest_comes_again = false;
    bool only_asks = false;  // the loop only evaluates guards (skip_idle_items)
    bool skips = false;  // the loop has another around it that only evaluates guards (skip_idle_items)
    bool is_copy = false;  // of a loop that counts already (separate_passing_items)
    bool is_divided = false;  // there are loops and blocks that the analyses do not know
};

// Whether work-items that are left over are worth a masked vector: code that is not long to execute is not worth the time to compile it once more.
bool may_mask_left_over(const llvm::Loop& loop, const WorkGroupOptions& options, const LaneTarget& prices,
                        double one_by_one) {
    constexpr double work_min = 60;
    constexpr size_t instructions_max = 1500;
    return (options.lanes != Lanes::where_they_pay || prices.masks == Masks::cheap) && one_by_one >= work_min &&
           instruction_count(loop) <= instructions_max;
}

Outcome vectorize(llvm::Loop& loop, UnfinishedLoops& unfinished, const llvm::TargetTransformInfo& target,
                  unsigned width, const WorkGroupOptions& options, const LaneTarget& prices, ExplicitVectors vectors_in,
                  double saved) {
    if (instruction_count(loop) > lane_instructions_of_winners_max)
        return {Outcome::Kind::does_not_pay, 0, too_long, true};
    llvm::LoopInfo& loops = unfinished.loops();
    llvm::DominatorTree& dominators = unfinished.dominators();
    auto plan = plan_lanes(loop, loops, unfinished.post_dominators(), width);
    if (!plan)
        return {Outcome::Kind::not_understood, 0, plan.error().reason};
    if (!is_tagged(loop, idle_items_tag) && separate_clipped_items(*plan, width))
        return {.kind = Outcome::Kind::vectorized, .comes_again = true, .is_divided = true};
    const Increments increments = options.lanes == Lanes::where_they_pay
                                      ? increments_that_pay(loop, loops, *plan, width, target, prices)
                                      : Increments::any;
    const unsigned of_blocks = lanes_of_blocks_that_pay(loop, loops, *plan, width, increments, target, prices);
    const LaneShapes shapes = shapes_of(loop, loops, *plan, LaneShapes::Certainty::certain, of_blocks, increments);
    if (const auto obstacle = obstacle_to_lanes(*plan, shapes))
        return {Outcome::Kind::not_understood, 0, obstacle->reason};
    const LaneShapes guesses = shapes_of(loop, loops, *plan, LaneShapes::Certainty::likely, of_blocks, increments);
    LaneAccesses accesses(shapes, guesses, width, target, prices.permutes, prices.gathers);
    if (fit_changes_to_lanes(*plan, shapes, accesses) > 0)
        return {.kind = Outcome::Kind::vectorized, .comes_again = true};
    LaneCosts costs = costs_of(*plan, shapes, accesses, width, prices);
    if (instruction_count(loop) > lane_instructions_max && costs.lanes > winners_part_max * costs.one_by_one)
        return {Outcome::Kind::does_not_pay, 0, too_long, true};
    costs.one_by_one -= saved_by_own_rows(*plan, shapes, accesses, dominators, target, width, costs.one_by_one);
    costs.one_by_one -= saved_by_passed_checks(*plan, shapes, dominators, width, costs.one_by_one);
    const double weight = weight_of_loop(loop);
    double gain = weight * costs.gain() / width;
    const double one_by_one = weight * costs.one_by_one / width, in_lanes = weight * costs.lanes / width;
    if (options.lanes == Lanes::where_they_pay && gain < 0)
        gain += weight * (waited_for_chains(*plan, dominators, prices) * (1 - 1.0 / width) +  // lanes wait once
                          saved_by_row_loops(*plan, shapes, accesses, dominators, target, width, prices.gathers));
    if (options.lanes == Lanes::where_they_pay && gain < 0) {
        Outcome outcome{Outcome::Kind::does_not_pay, 0, "lanes would be slower"};
        outcome.work = outcome.one_by_one = one_by_one;
        outcome.in_lanes = in_lanes;
        if (!is_tagged(loop, idle_items_tag) && skip_idle_items(*plan, shapes, accesses, vectors_that_ask * width))
            outcome.skips = outcome.is_divided = true;
        if (outcome.skips)
            outcome.reason += ", and only skip work-items with nothing to do";
        return outcome;
    }
    const bool is_rest = !llvm::isa<llvm::ConstantInt>(plan->start);
    const unsigned wanted = is_rest                ? 1
                            : options.vectors != 0 ? fitting_vectors(options.vectors, *plan, width)
                                                   : vectors_at_once(*plan, shapes, accesses, target, width, prices);
    const auto vectors = static_cast<unsigned>(std::min<uint64_t>(wanted, shapes.lanes_max() / width));
    const unsigned lanes = width * vectors;
    if (vectors > 1)
        promise_several_vectors(*loop.getHeader()->getParent());
    // Where the work-items of a row fill so many vectors, those that may pass guards are counted in as many, so that none is left over.
    leave_out_idle_end(*plan, shapes, is_multiple(*plan->count, lanes) ? lanes : width);
    // A loop that evaluates guards is too short to be divided.
    if ((!is_tagged(loop, idle_items_tag) && separate_passing_items(*plan, shapes, width, prices.masks)) ||
        unroll_row_loops(*plan, shapes, accesses, dominators, target) > 0) {
        return {.kind = Outcome::Kind::vectorized, .comes_again = true, .is_divided = true};
    }
    const double left_over = part_left_over(*plan, width), in_vectors = 1 - left_over;
    Outcome outcome{Outcome::Kind::vectorized, in_vectors * gain};
    outcome.one_by_one = one_by_one;
    outcome.in_lanes = in_vectors * in_lanes + left_over * one_by_one;
    outcome.structures = in_vectors * weight * costs.structures / width;
    const LaneWork work = work_of_lanes(*plan, shapes, accesses, width, prices);
    outcome.work = in_vectors * weight * work.instructions + left_over * one_by_one;
    outcome.masks = in_vectors * weight * work.masks;
    if (saved > 0 && saved < one_by_one)
        outcome.waited = weight * waited_for_chains(*plan, dominators, prices, 1 - saved / one_by_one);
    if (saved > 0 || vectors_in == ExplicitVectors::whole)
        outcome.work +=
            in_vectors * weight * waited_for_chains(*plan, dominators, prices, 1, Chained::of_integers) / width;
    outcome.comes_again = vectors > 1 && !is_multiple(*plan->count, lanes);
    outcome.vectors = vectors;
    const auto rows = distances_of_written_rows(*plan, shapes, accesses, costs.lanes / costs.one_by_one);
    const bool masks_rest = !is_rest && !is_multiple(*plan->count, lanes) &&
                            may_mask_left_over(loop, options, prices, costs.one_by_one / width) && rows.empty();
    const auto mask_rest = [&] {
        if (!masks_rest || !mask_left_over_items(*plan, width))
            return;
        outcome.comes_again = false;
        outcome.rest_comes_again = outcome.is_divided = true;
    };
    if (vectors > 1 && !plan->privates.empty()) {
        // Private variables are laid out for all lanes.
        const auto wide_plan = plan_lanes(loop, loops, unfinished.post_dominators(), lanes);
        const LaneShapes wide_shapes =
            shapes_of(loop, loops, *wide_plan, LaneShapes::Certainty::certain, of_blocks * vectors, increments);
        const LaneShapes wide_guesses =
            shapes_of(loop, loops, *wide_plan, LaneShapes::Certainty::likely, of_blocks * vectors, increments);
        LaneAccesses wide(wide_shapes, wide_guesses, lanes, target, prices.permutes, prices.gathers);
        outcome.serial_calls = emit_vector_loop(*wide_plan, wide_shapes, wide, lanes, prices.masks, rows);
        mask_rest();
        return outcome;
    }
    LaneAccesses wide(shapes, guesses, lanes, target, prices.permutes, prices.gathers);
    outcome.serial_calls = emit_vector_loop(*plan, shapes, vectors > 1 ? wide : accesses, lanes, prices.masks, rows);
    mask_rest();
    return outcome;
}

// Tries one loop; nothing when there is none.
std::optional<Outcome> vectorize_one(UnfinishedLoops& unfinished, const llvm::TargetTransformInfo& target,
                                     unsigned width, const WorkGroupOptions& options, const LaneTarget& prices,
                                     ExplicitVectors vectors, double saved) {
    llvm::Loop* const first = unfinished.next();
    if (first == nullptr)
        return std::nullopt;
    llvm::Loop& loop = *first;
    prepare_loop(loop);
    const unsigned whole =
        vectors == ExplicitVectors::whole ? lanes_of_whole_vectors(loop, unfinished.loops(), prices.register_words) : 0;
    const unsigned lane_count = whole > 0                ? std::min(width, whole)
                                : is_mostly_double(loop) ? std::max(width / 2, 2U)
                                                         : width;
    const bool only_asks = is_tagged(loop, idle_items_tag);
    const bool is_copy =
        is_tagged(loop, unguarded_tag) || is_tagged(loop, left_over_tag) || is_tagged(loop, clipped_tag);
    Outcome outcome{Outcome::Kind::does_not_pay, 0, "the kernel's own vectors fill a register"};
    if (lane_count > 1)
        outcome = vectorize(loop, unfinished, target, lane_count, options, prices, vectors, saved);
    outcome.only_asks = only_asks;
    outcome.is_copy = is_copy;
    outcome.width = lane_count;
    if (outcome.kind != Outcome::Kind::vectorized && !only_asks && !is_copy && !outcome.skips)
        leave_out_idle_end(loop);
    if (!outcome.comes_again && !outcome.rest_comes_again)
        retire(loop, outcome.kind == Outcome::Kind::not_understood ? LeftToLlvm::yes : LeftToLlvm::no);
    if (outcome.is_divided)
        unfinished.forget_analyses();
    return outcome;
}

// The function has no lanes: LLVM would make some of neighbouring work-items. The kernel's own loops are left to it.
void leave_one_by_one(llvm::Function& function, Lanes lanes) {
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    for (llvm::Loop* loop : tagged_loops(loops, work_item_loop_tag)) {
        if (lanes != Lanes::none)
            leave_out_idle_end(*loop);
        retire(*loop, LeftToLlvm::no);
    }
}

// The loop for a sub-group that may not be whole (regions/loop_nest.h).
llvm::BasicBlock* other_loop(const llvm::BasicBlock& preheader) {
    const llvm::BasicBlock* before = preheader.getSinglePredecessor();
    const auto* branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
    return branch && branch->isConditional() ? branch->getSuccessor(1) : nullptr;
}

// When all sub-groups are whole and no assumption has to be checked, the other loop is removed.
void forget_other_loop(llvm::BasicBlock& preheader) {
    auto* branch = llvm::cast<llvm::BranchInst>(preheader.getSinglePredecessor()->getTerminator());
    const auto* condition = llvm::dyn_cast<llvm::ConstantInt>(branch->getCondition());
    if (!condition || !condition->isOne())
        return;
    branch->getSuccessor(1)->removePredecessor(branch->getParent());
    llvm::BranchInst::Create(branch->getSuccessor(0), branch->getIterator());
    branch->eraseFromParent();
}

// Vectorizes the first loop with the tag; nothing when there is none. Returns the obstacle, or an empty text.
std::optional<std::string> vectorize_sub_group(llvm::Function& function, const char* tag, const SubGroupLanes& lanes,
                                               const llvm::TargetTransformInfo& target, const LaneTarget* prices) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    const auto tagged = tagged_loops(loops, tag);
    if (tagged.empty())
        return std::nullopt;
    separate_counter(*tagged.front());
    const llvm::PostDominatorTree post_dominators(function);
    std::string obstacle;
    for (const Masking masking : {Masking::where_divergent, Masking::everywhere}) {
        const auto plan = plan_lanes(*tagged.front(), loops, post_dominators, lanes.size, LoopKind::sub_group, masking);
        if (!plan) {
            obstacle = plan.error().reason;
            continue;
        }
        llvm::BasicBlock* const otherwise = tag == whole_sub_group_tag ? other_loop(*plan->preheader) : nullptr;
        const auto shapes = [&](LaneShapes::Certainty certainty) {
            return shapes_of(*plan->loop, loops, *plan, certainty);
        };
        const LaneShapes sure = shapes(otherwise ? LaneShapes::Certainty::certain : LaneShapes::Certainty::proven);
        if (const auto found = obstacle_to_lanes(*plan, sure)) {
            obstacle = found->reason;
            continue;
        }
        const LaneShapes guesses = shapes(LaneShapes::Certainty::likely);
        LaneAccesses accesses(sure, guesses, lanes.size, target, lanes.permutes);
        if (prices && costs_of(*plan, sure, accesses, lanes.size, *prices).gain() < 0)
            return "lanes would be slower";
        emit_sub_group(*plan, sure, accesses, lanes, otherwise);
        if (otherwise && sure.assumed_small().empty())
            forget_other_loop(*plan->preheader);
        return std::string{};
    }
    return obstacle;
}

struct Form {
    LaneReport report;
    double gain = 0, work = 0, masks = 0, one_by_one = 0, structures = 0, waited = 0;  // as those of an Outcome
};

Form vectorize_all(llvm::Function& function, unsigned width, const WorkGroupOptions& options, const LaneTarget& prices,
                   ExplicitVectors vectors, double saved, llvm::FunctionAnalysisManager& analyses) {
    canonicalise(function, vectors, analyses);
    const llvm::TargetTransformInfo& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    Form form;
    LaneReport& report = form.report;
    double in_lanes = 0;
    UnfinishedLoops unfinished(function, work_item_loop_tag);
    while (const std::optional<Outcome> outcome =
               vectorize_one(unfinished, target, width, options, prices, vectors, saved)) {
        report.vectors = std::max(report.vectors, outcome->vectors);
        report.is_too_long |= outcome->is_too_long;
        if (outcome->comes_again || outcome->only_asks)
            continue;  // the same loop again, or a part of one without lanes
        report.serial_calls.insert(outcome->serial_calls.begin(), outcome->serial_calls.end());
        if (outcome->is_copy)
            continue;
        const bool has_lanes = outcome->kind == Outcome::Kind::vectorized;
        ++(has_lanes ? report.loops : report.scalar_loops);
        report.width = std::max(report.width, has_lanes ? outcome->width : 0);
        if (report.reason.empty())
            report.reason = outcome->reason;
        form.gain += outcome->gain;
        form.work += outcome->work;
        form.masks += outcome->masks;
        form.one_by_one += outcome->one_by_one;
        form.structures += outcome->structures;
        form.waited += outcome->waited;
        in_lanes += outcome->in_lanes;
    }
    remove_loops_without_items(function);  // other functions need no code for them
    if (form.one_by_one > 0)
        report.estimate = in_lanes / form.one_by_one;
    return form;
}

}  // namespace

SubGroupReport vectorize_sub_group_loops(llvm::Function& function, const SubGroupLanes& lanes,
                                         llvm::FunctionAnalysisManager& analyses) {
    SubGroupReport report;
    if (llvm::none_of(function, has_sub_group_operation))
        return report;
    make_operations_plain(function);
    canonicalise(function, ExplicitVectors::split, analyses);
    const llvm::TargetTransformInfo& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    for (const char* tag : {whole_sub_group_tag, sub_group_tag})
        while (const auto obstacle = vectorize_sub_group(function, tag, lanes, target, nullptr)) {
            if (!obstacle->empty()) {
                report.obstacle = *obstacle;
                return report;
            }
            ++report.loops;
            llvm::removeUnreachableBlocks(function);
        }
    analyses.clear(function, function.getName());
    return report;
}

std::string vectorize_one_vector(llvm::Function& function, const SubGroupLanes& lanes,
                                 llvm::FunctionAnalysisManager& analyses, const LaneTarget* prices) {
    make_operations_plain(function);
    canonicalise(function, ExplicitVectors::split, analyses);
    const auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    const auto obstacle = vectorize_sub_group(function, sub_group_tag, lanes, target, prices);
    llvm::removeUnreachableBlocks(function);
    analyses.clear(function, function.getName());
    return obstacle.value_or("there is no loop over lanes");
}

LaneReport vectorize_work_item_loops(llvm::Function& function, unsigned width, const WorkGroupOptions& options,
                                     const LaneTarget& prices, const SubGroupReport& sub_groups,
                                     llvm::FunctionAnalysisManager& analyses) {
    const Lanes lanes = options.lanes;
    if (lanes == Lanes::none) {
        leave_one_by_one(function, lanes);
        return {.reason = "lanes are switched off"};
    }
    if (width < 2)
        return {.reason = "no dimension of the work-group has two work-items"};
    call_exchanges(function, analyses);
    separate_structure_lengths(function, analyses);
    SavedByVectors saved_by_one;
    bool are_wide = false;
    double margin = margin_without_loops, added_by_casts = 0;
    {
        llvm::DominatorTree dominators(function);
        const llvm::LoopInfo loops(dominators);
        const auto tagged = tagged_loops(loops, work_item_loop_tag);
        if (tagged.empty())
            return {.reason = "there is no loop over work-items"};
        are_wide = use_wide_vectors(tagged, loops);
        if (llvm::any_of(tagged, [](const llvm::Loop* loop) { return !loop->isInnermost(); }))
            margin = margin_of_work;
        saved_by_one = saved_by_vectors(tagged, loops, prices);
        added_by_casts = added_by_plain_casts(tagged, loops);
    }
    const double saved = saved_by_one.anywhere;
    const auto in_form = [&](llvm::Function& form, ExplicitVectors vectors) {
        const double saved_now = vectors == ExplicitVectors::split ? saved : 0;
        return vectorize_all(form, width, options, prices, vectors, saved_now, analyses);
    };
    if (lanes == Lanes::with_whole_vectors || sub_groups.loops > 0)
        return in_form(function, ExplicitVectors::whole).report;
    if (!are_wide && (saved == 0 || lanes == Lanes::wherever_possible))
        return in_form(function, ExplicitVectors::split).report;
    CopiedFunction as_written(function, analyses), with_whole(function, analyses);
    Form split = are_wide ? Form{} : in_form(function, ExplicitVectors::split);
    if (split.gain > 0 && saved < least_part_saved * split.one_by_one)
        return split.report;
    Form whole = in_form(*with_whole, ExplicitVectors::whole);
    // An explicit vector that is apart from its neighbour's is one load without lanes. In lanes its elements go to as many registers, by
    // moves across the whole of them, which wait for each other and take longer than other instructions.
    const double split_gain = split.gain - split.structures;
    const double rest_of_vectors = split.one_by_one - saved + split.waited;
    const bool are_much_fewer =
        margin == margin_of_work && split.one_by_one - split_gain < part_of_instructions * rest_of_vectors;
    const double rest_in_windows = split.one_by_one - saved_by_one.in_windows + split.waited;
    const bool are_few_in_windows =
        saved_by_one.in_windows < saved && split.one_by_one - split_gain < part_in_windows * rest_in_windows;
    const bool does_split_pay = !are_wide && (split_gain >= least_gain * saved || are_much_fewer || are_few_in_windows);
    // Where split vectors do not pay, whole ones compete with no lanes, and have to win clearly.
    const double whole_work = whole.work + (does_split_pay ? 0 : whole.masks);
    const bool is_whole_faster =
        are_wide || (whole_work < margin * split.work && whole.report.scalar_loops <= split.report.scalar_loops);
    if (whole.gain > added_by_casts && is_whole_faster) {
        analyses.clear(function, function.getName());
        take_body(function, *with_whole);
        whole.report.keeps_vectors = !are_wide;
        if (whole.one_by_one > added_by_casts)
            whole.report.estimate *= whole.one_by_one / (whole.one_by_one - added_by_casts);
        return whole.report;
    }
    if (does_split_pay) {
        // Without lanes, the kernel's own vectors are kept.
        split.report.estimate *= rest_in_windows > 0 ? split.one_by_one / rest_in_windows : 0;
        return split.report;
    }
    analyses.clear(function, function.getName());
    take_body(function, *as_written);  // with explicit vectors
    leave_one_by_one(function, lanes);
    return {.reason = are_wide ? "the kernel's own vectors are wide" : "the kernel's own vectors are faster",
            .keeps_vectors = !are_wide};
}

}  // namespace polder::compiler::workgroup
