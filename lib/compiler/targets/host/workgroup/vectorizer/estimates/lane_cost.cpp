// A sum over the instructions of a loop. Each is weighted by how often its block is assumed to run: 8^depth times inside of `depth` loops,
// at most 8^4, and less often in arms of uniform switches and in loops over windows.
#include "lane_cost.h"

#include "call_costs.h"
#include "explicit_vectors.h"
#include "growth.h"
#include "skipped_code.h"
#include "table_costs.h"
#include "targets/host/workgroup/frame/accumulators.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/vectorizer/analysis/uniform_arms.h"
#include "targets/host/workgroup/work_items/local_atomics.h"
#include "window_loops.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <utility>

namespace polder::compiler::workgroup {

namespace {

// How many registers the explicit vectors of all lanes fill. Numbers count as one register, of whatever type.
double registers_of(const llvm::Type& type, unsigned lanes, const LaneTarget& target) {
    constexpr unsigned word = 32;
    if (!type.isVectorTy())
        return 1;
    return static_cast<double>(llvm::divideCeil(
        lanes * elements_of_lane(type) * std::max(type.getScalarSizeInBits(), 8U), word * target.register_words));
}

// Whether each lane loads the structure that the instruction reads an element of at once, and the structures are apart. One that fits into a word, such as
// four bytes, is an element of a gather and is taken apart by shifts.
bool is_structure_element(llvm::Instruction& instruction, const llvm::Value& address, const LaneShapes& shapes,
                          LaneAccesses& accesses) {
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (!load || shapes.of(&address).is_uniform() || accesses.table_of(instruction) || accesses.of(instruction))
        return false;
    const size_t elements = accesses.structure_of(*load).size();
    const uint64_t bytes =
        elements * load->getModule()->getDataLayout().getTypeStoreSize(load->getType()).getFixedValue();
    return bytes > sizeof(uint64_t) && accesses.is_loaded_at_once(*load->getType(), elements);
}

// One load or store for each lane, and an instruction that joins or divides.
double cost_of_vectors_apart(unsigned lanes, bool is_masked) {
    constexpr double vector_per_lane = 2, masked_per_lane = 4;
    return lanes * (is_masked ? masked_per_lane : vector_per_lane);
}

// `partial`: rarely all lanes are active.
enum class Mask : uint8_t { none, whole, partial };

// An address as an index into an array and a distance from that element.
struct ElementPlace {
    const llvm::Value *base = nullptr, *index = nullptr;
    int64_t bytes = 0;
};
ElementPlace element_place(const llvm::Value& address, const llvm::DataLayout& layout) {
    llvm::APInt offset(layout.getIndexTypeSizeInBits(address.getType()), 0);
    ElementPlace place{address.stripAndAccumulateConstantOffsets(layout, offset, true)};
    place.bytes = offset.getSExtValue();
    const auto* const gep = llvm::dyn_cast<llvm::GetElementPtrInst>(place.base);
    if (gep == nullptr || gep->getNumIndices() != 1)
        return place;
    place.base = gep->getPointerOperand();
    place.index = gep->getOperand(1);
    if (const auto* const extended = llvm::dyn_cast<llvm::SExtInst>(place.index))
        place.index = extended->getOperand(0);
    const auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(place.index);
    const auto* const added = sum && sum->getOpcode() == llvm::Instruction::Add
                                  ? llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(1))
                                  : nullptr;
    if (added != nullptr && added->getBitWidth() <= 64) {
        place.index = sum->getOperand(0);
        place.bytes += added->getSExtValue() *
                       static_cast<int64_t>(layout.getTypeAllocSize(gep->getSourceElementType()).getFixedValue());
    }
    return place;
}

// Whether the block loads neighbours of what it stores, so that the next vector loads something of what this one has stored.
bool is_loaded_beside(const llvm::Instruction& store) {
    constexpr int64_t line_bytes = 64;
    const llvm::DataLayout& layout = store.getDataLayout();
    const ElementPlace stored = element_place(*llvm::getLoadStorePointerOperand(&store), layout);
    return stored.index != nullptr && llvm::any_of(*store.getParent(), [&](const llvm::Instruction& one) {
               const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&one);
               if (load == nullptr)
                   return false;
               const ElementPlace loaded = element_place(*load->getPointerOperand(), layout);
               const int64_t distance = loaded.bytes - stored.bytes;
               return loaded.base == stored.base && loaded.index == stored.index && distance != 0 &&
                      std::abs(distance) < line_bytes;
           });
}

// Where masks are dear, the cost of a row of which only some lanes are active; 0 when it is that of all lanes. A load that overlaps a masked store waits until the
// cache has what was stored.
double cost_of_partial_row(const llvm::Instruction& instruction, const LaneAccess& access, unsigned lanes) {
    constexpr double masked_store = 12, waiting_load = 100;
    if (access.takes_mask && access.is_slow_under_mask)
        return masked_store + (is_loaded_beside(instruction) ? waiting_load : 0);
    if (access.takes_mask)
        return 0;
    return cost_of_access_apart(lanes, true) / static_cast<double>(access.group.size());
}

// A store of elements that are a constant step apart: a row of vectors under masks, or one lane after the other, each an instruction that takes the
// element from its vector.
double cost_of_store_with_gaps(const LaneAccess& access, unsigned lanes, bool is_masked) {
    constexpr double question = 2, shuffle_and_store = 2, other_shuffles = 1, stored_per_lane = 1.75;
    const bool is_asked = !access.is_certain || (is_masked && !access.gaps_take_mask);
    if (!access.gaps_take_mask)
        return stored_per_lane * lanes + (is_asked ? question : 0);
    const auto vectors = static_cast<double>(access.step), members = static_cast<double>(access.group.size());
    const double shuffles = shuffle_and_store + (members > 1 ? other_shuffles : 0) + (is_masked ? 1 : 0);
    return (vectors * shuffles + (is_asked ? question : 0)) / members;
}

// The cost of a load or store of all lanes in the form that LaneCode emits.
double cost_of_access(llvm::Instruction& instruction, const llvm::Value& address, const LaneShapes& shapes,
                      LaneAccesses& accesses, ApartCosts& apart, unsigned width, Mask mask, const LaneTarget& target) {
    constexpr double question = 4;
    // Structures are loaded for all lanes, also when most have left the loop.
    constexpr double structure_of_some_lanes = 2.25;
    const bool is_masked = mask != Mask::none;
    if (shapes.of(&address).is_uniform())
        return cost_of_access(LanePlaces::same, width);
    if (const ConstantTable* const table = accesses.table_of(instruction))
        return table->instructions(width);
    const std::optional<LaneAccess> access = accesses.of(instruction);
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && !access)
        if (const size_t elements = accesses.structure_of(*load).size();
            accesses.is_loaded_at_once(*load->getType(), elements))
            return cost_of_structure_element(*load->getType(), elements, width) *
                   (apart.is_left_one_by_one(*load) ? structure_of_some_lanes : 1);
    if (llvm::getLoadStoreType(&instruction)->isVectorTy() &&
        (!access || (llvm::isa<llvm::StoreInst>(instruction) && access->step > 1 && !access->is_whole_group())))
        return cost_of_vectors_apart(width, is_masked);
    const bool has_gaps =
        access && llvm::isa<llvm::StoreInst>(instruction) && access->step > 1 && !access->is_whole_group();
    if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && !access)
        if (const auto cost = cost_in_registers(*load, shapes, accesses.permutes(), width))
            return *cost;
    if (!access || has_gaps) {
        double cost = apart.of(instruction, width);
        if (has_gaps && (mask != Mask::partial || access->gaps_take_mask))
            cost = std::min(cost, cost_of_store_with_gaps(*access, width, is_masked));
        return cost / static_cast<double>(accesses.elements_stored_with(
                          instruction, is_masked ? LaneAccesses::Stored::some_lanes : LaneAccesses::Stored::all_lanes));
    }
    const bool is_asked = !access->is_certain || (is_masked && !access->takes_mask);
    if (mask == Mask::partial && target.masks == Masks::dear)
        if (const double cost = cost_of_partial_row(instruction, *access, width); cost > 0)
            return question + cost;
    // For the whole interleave group: as many vectors as the step has elements, and as many shuffles.
    const double together =
        access->step > 1 ? 2.0 * static_cast<double>(access->step) / static_cast<double>(access->group.size()) : 1.0;
    return together * registers_of(*llvm::getLoadStoreType(&instruction), width, target) + (is_asked ? question : 0);
}

LaneCosts costs_of(llvm::Instruction& instruction, const LaneShapes& shapes, LaneAccesses& accesses, ApartCosts& apart,
                   unsigned width, Mask mask, const LaneTarget& target) {
    const double one_by_one = width;
    if (const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
        address && !instruction.isAtomic() && !instruction.isVolatile()) {
        const double cost = cost_of_access(instruction, *address, shapes, accesses, apart, width, mask, target);
        return {cost, one_by_one, is_structure_element(instruction, *address, shapes, accesses) ? cost : 0};
    }
    // A value with a constant step is one scalar operation for all lanes. Without lanes it is usually a part of an access and costs nothing.
    if (const LaneShape shape = shapes.of(&instruction); !instruction.getType()->isVoidTy() && shape.is_strided())
        return {1, shape.is_uniform() ? one_by_one : 0};
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        call && call->getCalledFunction() && call->getCalledFunction()->hasFnAttribute(llvm::Attribute::Cold))
        return {2, one_by_one};  // a branch around it
    if (is_call_for_lanes(instruction, width)) {
        const CallCosts costs = costs_of_call(instruction, width);
        return {costs.lanes, costs.one_by_one};
    }
    if (!is_vector_instruction(instruction)) {
        // A loop of compare and exchange takes branches for each lane.
        constexpr double exchange = 5, other = 3;
        return {(is_exchange_call(instruction) ? exchange : other) * width, one_by_one};
    }
    if (moves_elements(instruction)) {
        const double moves = only_moves_elements(instruction) ? one_by_one : 0;
        return {moves_in_lanes(instruction, width, target.permutes) *
                    registers_of(*instruction.getType(), width, target),
                moves};
    }
    return {registers_of(*instruction.getType(), width, target),
            llvm::isa<llvm::GetElementPtrInst>(instruction) ? 0 : one_by_one};
}

// Atomic operations on local memory are loads and stores, one lane after the other. Each waits for the one before, as if they had the same address.
// In a loop over work-items, which has one of each, a processor learns that they rarely have (Zen 4: 5 to 14 cycles against 2). But loops of the
// kernel often step over all work-items of the launch: then only lanes read what is side by side. With few lanes, as of a kernel's own vectors, a work-item
// soon changes a byte again, or one that the processor takes for it (the lower 12 bits of both addresses agree).
double cost_of_local_atomic(const llvm::Instruction& operation, const LanePlan& plan, unsigned width) {
    constexpr double waiting = 10, more_of_few = 3, changed_element = 11, other = 3;
    constexpr unsigned few = 8;
    const auto* const change = llvm::dyn_cast<llvm::AtomicRMWInst>(&operation);
    const bool is_element = change && change->getSyncScopeID() == llvm::SyncScope::SingleThread;  // element_changes.h
    const double one = !is_element ? other : changed_element + (width < few ? more_of_few : 0);
    return (plan.loop->isInnermost() ? waiting : one) * width;
}

// Whether the value follows from what the work-item has loaded, in so many instructions at most.
bool depends_on_load(const llvm::Value& value, const llvm::Loop& item_loop, size_t values_max = 16) {
    llvm::SmallPtrSet<const llvm::Value*, 16> seen;
    llvm::SmallVector<const llvm::Value*> todo{&value};
    while (!todo.empty() && seen.size() < values_max) {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(todo.pop_back_val());
        if (!instruction || !item_loop.contains(instruction) || !seen.insert(instruction).second)
            continue;
        if (llvm::isa<llvm::LoadInst>(instruction))
            return true;
        todo.append(instruction->op_begin(), instruction->op_end());
    }
    return false;
}

// Whether the block is in a loop of the kernel that lanes leave early, each when it has loaded what it looks for.
bool is_in_search(const llvm::BasicBlock& block, const LanePlan& plan) {
    const auto ends_by_load = [&](const llvm::BasicBlock* from) {
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
        return plan.divergent.contains(from) && branch && branch->isConditional() &&
               depends_on_load(*branch->getCondition(), *plan.loop);
    };
    for (const llvm::Loop* around = plan.loops->getLoopFor(&block); around != plan.loop;
         around = around->getParentLoop()) {
        llvm::SmallVector<llvm::BasicBlock*> exiting;
        around->getExitingBlocks(exiting);
        if (exiting.size() > 1 && llvm::any_of(exiting, ends_by_load))
            return true;
    }
    return false;
}

Mask mask_of(llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes) {
    if (!plan.is_masked(&block))
        return Mask::none;
    return is_in_search(block, plan) || has_partial_mask(block, plan, shapes) ? Mask::partial : Mask::whole;
}

// What one work-item waits for at the end of the block, in instructions: the processor cannot predict a branch that decides by what was loaded
// whether something is stored, as in a sort, or only loaded, as in a picture with borders. Where neither is so, LLVM chooses values without a branch. In
// loops of the work-item branches in front of stores often search, as breadth-first searches do, and mostly go one way.
double cost_of_branch(const LanePlan& plan, const llvm::BasicBlock& block) {
    constexpr double unpredicted = 4;
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional() || !plan.divergent.contains(&block))
        return 0;
    const bool is_in_loop = plan.loops->getLoopFor(&block) != plan.loop;
    const auto cannot_be_chosen = [&](const llvm::BasicBlock* next) {
        if (next->getSinglePredecessor() == nullptr)
            return false;
        const bool writes = llvm::any_of(*next, [](const llvm::Instruction& one) { return one.mayWriteToMemory(); });
        return writes ? !is_in_loop
                      : llvm::any_of(*next, [](const llvm::Instruction& one) { return one.mayReadFromMemory(); });
    };
    const bool is_unpredicted =
        llvm::any_of(branch->successors(), cannot_be_chosen) && depends_on_load(*branch->getCondition(), *plan.loop);
    return is_unpredicted ? unpredicted : 0;
}

// Whether the loop counts to a number that differs between lanes and comes from memory, such as the length of a row. Numbers that follow from ids alone are
// those of windows that end at the edges of a picture, or of triangles: neighbours have nearly the same one. Searches also end at different times, but after
// nearly as many iterations.
bool counts_to_own_number(const llvm::Loop& loop, const LanePlan& plan, const LaneShapes& shapes) {
    llvm::SmallVector<llvm::BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    const auto step_of = [&](const llvm::Value* value) {
        const auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(value);
        return sum && sum->getOpcode() == llvm::Instruction::Add && loop.isLoopInvariant(sum->getOperand(1)) ? sum
                                                                                                             : nullptr;
    };
    const auto is_counter = [&](const llvm::Value* value) {
        const auto* const sum = step_of(value);
        const auto* const phi = llvm::dyn_cast<llvm::PHINode>(sum ? sum->getOperand(0) : value);
        return phi && phi->getParent() == loop.getHeader() &&
               llvm::any_of(phi->incoming_values(), [&](const llvm::Use& next) {
                   const auto* const step = step_of(next.get());
                   return step && step->getOperand(0) == phi;
               });
    };
    constexpr size_t values_max = 64;  // with divisions by arguments, which were divided into ten instructions
    const auto is_own_number = [&](const llvm::Value* value) {
        return loop.isLoopInvariant(value) && shapes.of(value).kind == LaneShape::Kind::varying &&
               depends_on_load(*value, *plan.loop, values_max);
    };
    return llvm::any_of(exiting, [&](const llvm::BasicBlock* block) {
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        const auto* const comparison = plan.divergent.contains(block) && branch && branch->isConditional()
                                           ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition())
                                           : nullptr;
        if (comparison == nullptr)
            return false;
        const llvm::Value *const left = comparison->getOperand(0), *const right = comparison->getOperand(1);
        return (is_counter(left) && is_own_number(right)) || (is_counter(right) && is_own_number(left));
    });
}

// Whether lanes may leave the loop in different iterations.
bool ends_at_different_times(const llvm::Loop& loop, const LanePlan& plan) {
    llvm::SmallVector<llvm::BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    return llvm::any_of(exiting, [&](const llvm::BasicBlock* block) { return plan.divergent.contains(block); });
}

// Whether lanes leave the loop at different times and each has a stack, a private array in which its place is a number of its own: as they
// walk trees.
bool walks_with_stack(const llvm::Loop& loop, const LanePlan& plan, const LaneShapes& shapes) {
    if (!ends_at_different_times(loop, plan))
        return false;
    llvm::SmallPtrSet<const llvm::Value*, 2> loaded, stored;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block) {
            const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
            if (address == nullptr || shapes.of(address).kind != LaneShape::Kind::varying)
                continue;
            // LLVM makes one load of what is either the top of the stack or, at first, an argument.
            llvm::SmallVector<const llvm::Value*, 4> objects;
            llvm::getUnderlyingObjects(address, objects);
            for (const llvm::Value* const object : objects)
                if (llvm::isa<llvm::AllocaInst>(object))
                    (llvm::isa<llvm::LoadInst>(instruction) ? loaded : stored).insert(object);
        }
    return llvm::any_of(loaded, [&](const llvm::Value* object) { return stored.contains(object); });
}

// How much longer a vector stays in the loops around the block than its lanes would one by one: until the last of them leaves, in each of the
// loops. Where the numbers are evenly spread between 0 and a greatest one, it is 1.6 to 1.9 times as long; often they are nearly equal. Walks through trees
// are as long as the trees' parts that each lane sees, and so are the loops in them, such as those that go down to a leaf.
double waiting_for_last_lane(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes) {
    constexpr double last_lane = 1.3, last_walk = 1.6;
    double waiting = 1;
    unsigned others = 0;  // loops inside of the one that is looked at
    for (const llvm::Loop* loop = plan.loops->getLoopFor(&block); loop != plan.loop; loop = loop->getParentLoop()) {
        if (counts_to_own_number(*loop, plan, shapes))
            waiting *= last_lane;
        else if (walks_with_stack(*loop, plan, shapes))
            waiting *= std::pow(last_walk, 1 + std::exchange(others, 0));
        else if (ends_at_different_times(*loop, plan))
            ++others;
    }
    return waiting;
}

// What one work-item pays besides for an access that is side by side for all lanes, such as `values[k * n + id]`, in a loop of the kernel: each of its
// iterations is on another line of memory, and the caches keep the lines for its neighbours at best. A load from the second cache takes 14 cycles. Local
// memory is in the first one.
double cost_of_lines(const LanePlan& plan, llvm::Instruction& instruction, const LaneShapes& shapes,
                     LaneAccesses& accesses) {
    constexpr int64_t line_bytes = 64;
    constexpr double line = 3;
    const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
    const llvm::Loop* const loop = plan.loops->getLoopFor(instruction.getParent());
    if (address == nullptr || loop == plan.loop || shapes.of(address).is_uniform() || !is_in_buffer(instruction))
        return 0;
    const auto access = accesses.of(instruction);
    if (!access || !access->is_consecutive())
        return 0;
    const auto growth = growth_of(address, *loop);
    return !growth || std::abs(*growth) >= line_bytes ? line : 0;
}

}  // namespace

double cost_of_access(LanePlaces places, unsigned lanes) {
    return places == LanePlaces::apart ? cost_of_access_apart(lanes, false) : 1;
}

double cost_of_structure_element(const llvm::Type& element, size_t elements, unsigned lanes) {
    // Three bytes are a word. No instruction loads three elements: there are two loads, and their results are combined. In the first cache that costs 6 at most, but a 3 x 3 filter
    // whose lanes are in different rows took 1.4 times as long with lanes (Zen 4).
    constexpr double structure_per_lane = 4, three_per_lane = 10;
    return (elements == 3 && !element.isIntegerTy(8) ? three_per_lane : structure_per_lane) * lanes /
           static_cast<double>(elements);
}

double weight_of_block(unsigned depth) {
    constexpr double rounds = 8;
    constexpr unsigned weighed_depth_max = 4;
    return std::pow(rounds, std::min(depth, weighed_depth_max));
}

unsigned kernel_loops_around(const llvm::Loop& item_loop) {
    unsigned count = 0;
    for (const llvm::Loop* around = item_loop.getParentLoop(); around != nullptr; around = around->getParentLoop())
        count += llvm::findOptionMDForLoop(around, items_tag) == nullptr ? 1 : 0;
    return count;
}

bool is_vector_instruction(const llvm::Instruction& instruction) {
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        return llvm::isTriviallyVectorizable(call->getIntrinsicID());
    return !instruction.mayReadOrWriteMemory();
}

LaneCosts costs_of(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned width,
                   const LaneTarget& target) {
    ApartCosts apart(plan, shapes, target.gathers);
    const UniformArms arms(plan, shapes);
    LaneCosts all;
    for (llvm::BasicBlock* block : plan.blocks) {
        if (is_in_fallback_loop(*plan.loops, block))
            continue;
        const double weight = arms.part_of(*block) * part_of_windows(*block, plan, shapes) *
                              weight_of_block(plan.loops->getLoopDepth(block) - plan.loop->getLoopDepth());
        const Mask mask = mask_of(*block, plan, shapes);
        const double waiting = waiting_for_last_lane(*block, plan, shapes);
        for (llvm::Instruction& instruction : *block) {
            if (llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator() ||
                llvm::isa<llvm::AssumeInst>(instruction) || instruction.isLifetimeStartOrEnd() ||
                &instruction == plan.next || &instruction == plan.compare)
                continue;
            LaneCosts costs = costs_of(instruction, shapes, accesses, apart, width, mask, target);
            if (instruction.hasMetadata(local_atomic_mark))
                costs.lanes = cost_of_local_atomic(instruction, plan, width);
            all.lanes += weight * waiting * costs.lanes;
            all.structures += weight * waiting * costs.structures;
            costs.one_by_one += width * cost_of_lines(plan, instruction, shapes, accesses);
            all.one_by_one += weight * costs.one_by_one;
        }
        all.one_by_one += weight * cost_of_branch(plan, *block) * width;
    }
    return all;
}

}  // namespace polder::compiler::workgroup
