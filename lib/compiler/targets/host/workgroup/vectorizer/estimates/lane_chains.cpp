// A chain goes from a phi of the loop to its next value, or from a load of a private array to the store of the element that the next iteration
// loads. Its latency is that of the longest path of operations between the two. Paths through other loads are ignored: with
// lanes these may be gathers, which take longer. But a search whose next place depends on what it has loaded (a walk down a tree, two sorted lists
// in step) waits for each load, and ends where the processor does not expect it: then nothing of the next work-item has begun. Only kernels whose loops
// write nothing are looked at for such searches: the merge of two lists, each work-item's part found by a search, is 1.9 times as long with lanes where its
// comparisons are predicted.
//
// The latencies are those of current processors in cycles (Zen 4; Intel's differ by one or two). While one work-item waits, the processor executes
// the next ones as far as its window of instructions reaches.
#include "lane_chains.h"

#include "lane_cost.h"
#include "targets/host/workgroup/frame/accumulators.h"
#include "targets/host/workgroup/frame/trip_counts.h"
#include "targets/host/workgroup/vectorizer/analysis/own_scalar_evolution.h"

#include <algorithm>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

constexpr double instructions_per_cycle = 3, window = 300, store_to_load = 7;
constexpr double rounds_unknown = 8;  // as in lane_cost
constexpr size_t instructions_max = 500;
// Of the registers with which lanes gain where each waits for loads: with four lanes, a search in a tree takes 1.4 times as long.
constexpr unsigned register_words_of_searches = 8;

double latency_of(const llvm::Instruction& instruction) {
    constexpr double simple = 1, multiplied = 3, floating = 4, by_constant = 8, divided = 11;
    switch (instruction.getOpcode()) {
    case llvm::Instruction::PHI:
    case llvm::Instruction::BitCast:
    case llvm::Instruction::Freeze: return 0;
    case llvm::Instruction::Mul: return multiplied;
    case llvm::Instruction::SDiv:
    case llvm::Instruction::UDiv:
    case llvm::Instruction::SRem:
    case llvm::Instruction::URem: return llvm::isa<llvm::Constant>(instruction.getOperand(1)) ? by_constant : divided;
    case llvm::Instruction::FMul: {
        // It becomes one instruction with the addition.
        const auto* const user =
            instruction.hasOneUse() ? llvm::cast<llvm::Instruction>(*instruction.user_begin()) : nullptr;
        const bool is_fused =
            user && (user->getOpcode() == llvm::Instruction::FAdd || user->getOpcode() == llvm::Instruction::FSub);
        return is_fused ? 0 : floating;
    }
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::SIToFP:
    case llvm::Instruction::UIToFP:
    case llvm::Instruction::FPToSI:
    case llvm::Instruction::FPToUI: return floating;
    case llvm::Instruction::FDiv: return divided;
    default: break;
    }
    const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call == nullptr)
        return simple;
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::fma:
    case llvm::Intrinsic::fmuladd: return floating;
    case llvm::Intrinsic::sqrt: return divided;
    default: return simple;
    }
}

// What an iteration computes from what the one before has computed.
struct Recurrence {
    const llvm::Instruction* begin = nullptr;
    const llvm::Value* end = nullptr;
    double latency = 0;  // from the end to the next iteration's begin
};

class Chains {
public:
    Chains(const LanePlan& plan, llvm::DominatorTree& dominators, const LaneTarget& target, double part, Chained which)
        : plan_(plan), target_(target), part_(part), which_(which), function_(*plan.header->getParent()),
          own_(function_, dominators, *plan.loops) {}

    double all() {
        double sum = 0;
        const bool looks_at_searches =
            target_.register_words >= register_words_of_searches && llvm::none_of(plan_.loop->getSubLoops(), writes);
        for (const llvm::Loop* loop : plan_.loop->getLoopsInPreorder())
            if (loop != plan_.loop && looks_at_searches && is_search(*loop))
                sum += weight_of_block(loop->getLoopDepth() - plan_.loop->getLoopDepth()) * waited_for_loads(*loop);
            else if (loop != plan_.loop && are_looked_at(*loop) && loop->getHeader()->size() <= instructions_max &&
                     !is_in_fallback_loop(*plan_.loops, loop->getHeader()))
                sum += weight_of_block(loop->getLoopDepth() - plan_.loop->getLoopDepth()) * waited(*loop);
        return sum;
    }

private:
    [[nodiscard]] bool are_looked_at(const llvm::Loop& loop) const {
        return loop.getLoopLatch() != nullptr &&
               (loop.getNumBlocks() == 1 || (which_ == Chained::of_integers && loop.isInnermost())) &&
               llvm::none_of(loop.blocks(), [&](llvm::BasicBlock* block) { return plan_.divergent.contains(block); });
    }

    static double executed(llvm::ArrayRef<llvm::BasicBlock*> blocks) {
        size_t count = 0;
        for (const llvm::BasicBlock* block : blocks)
            count += llvm::count_if(*block, [](const llvm::Instruction& instruction) {
                return !llvm::isa<llvm::PHINode, llvm::GetElementPtrInst>(instruction) && !instruction.isTerminator();
            });
        return static_cast<double>(count);
    }

    static bool writes(const llvm::Loop* loop) {
        return llvm::any_of(loop->blocks(), [](const llvm::BasicBlock* block) {
            return llvm::any_of(*block, [](const llvm::Instruction& one) { return one.mayWriteToMemory(); });
        });
    }

    // Whether lanes leave the loop at different times.
    [[nodiscard]] bool is_search(const llvm::Loop& loop) const {
        if (!loop.isInnermost() || loop.getLoopLatch() == nullptr ||
            is_in_fallback_loop(*plan_.loops, loop.getHeader()))
            return false;
        llvm::SmallVector<llvm::BasicBlock*> exiting;
        loop.getExitingBlocks(exiting);
        return llvm::any_of(exiting, [&](llvm::BasicBlock* block) { return plan_.divergent.contains(block); }) &&
               llvm::none_of(loop.blocks(),
                             [](const llvm::BasicBlock* block) { return block->size() > instructions_max; });
    }

    // In one iteration of a search, of which one work-item is in flight.
    double waited_for_loads(const llvm::Loop& loop) {
        double cycles = 0;
        for (const llvm::PHINode& phi : loop.getHeader()->phis())
            cycles = std::max(cycles, latency_through_loads(loop, phi));
        return std::max(0.0, cycles * instructions_per_cycle - part_ * executed(loop.getBlocks()));
    }

    // Of the longest path from the phi to its next value, if a load is on one; else 0. A value that depends on the way to its block depends on the
    // conditions of this way.
    double latency_through_loads(const llvm::Loop& loop, const llvm::PHINode& begin) {
        constexpr double loaded = 5;
        struct Time {
            double cycles = 0;
            bool is_loaded = false;
        };
        llvm::DenseMap<const llvm::Value*, Time> ready{{&begin, {}}};
        llvm::LoopBlocksRPO order(const_cast<llvm::Loop*>(&loop));
        order.perform(plan_.loops);
        for (const llvm::BasicBlock* block : order)
            for (const llvm::Instruction& instruction : *block) {
                const bool is_merge = llvm::isa<llvm::PHINode>(instruction);
                if (is_merge && block == loop.getHeader())
                    continue;
                std::optional<Time> latest;
                const auto wait_for = [&](const llvm::Value* value) {
                    const auto found = ready.find(value);
                    if (found == ready.end())
                        return;
                    const Time before = latest.value_or(Time{});
                    latest = {std::max(before.cycles, found->second.cycles),
                              before.is_loaded || found->second.is_loaded};
                };
                for (const llvm::Value* operand : instruction.operands())
                    wait_for(operand);
                if (is_merge)
                    for (const llvm::BasicBlock* from : llvm::predecessors(block))
                        if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
                            branch && branch->isConditional())
                            wait_for(branch->getCondition());
                if (!latest)
                    continue;
                const bool is_load = llvm::isa<llvm::LoadInst>(instruction);
                ready[&instruction] = {latest->cycles + (is_load    ? loaded
                                                         : is_merge ? 1
                                                                    : latency_of(instruction)),
                                       latest->is_loaded || is_load};
            }
        const auto end = ready.find(begin.getIncomingValueForBlock(loop.getLoopLatch()));
        return end != ready.end() && end->first != &begin && end->second.is_loaded ? end->second.cycles : 0;
    }

    // In one iteration.
    double waited(const llvm::Loop& loop) {
        const llvm::BasicBlock& block = *loop.getHeader();
        const double instructions = part_ * executed(loop.getBlocks());
        const unsigned known = known_trip_count(loop, evolution_);
        const double rounds = known == 0 ? rounds_unknown : known;
        const double items_at_once = 1 + window / (instructions * rounds);
        double cycles = 0;
        for (const Recurrence& recurrence : recurrences(block, *loop.getLoopLatch()))
            if (which_ != Chained::of_integers || recurrence.begin->getType()->isIntOrIntVectorTy())
                cycles = std::max(cycles, latency(block, recurrence));
        return std::max(0.0, cycles * instructions_per_cycle / items_at_once - instructions);
    }

    llvm::SmallVector<Recurrence> recurrences(const llvm::BasicBlock& block, const llvm::BasicBlock& latch) {
        llvm::SmallVector<Recurrence> found;
        for (const llvm::PHINode& phi : block.phis())
            found.push_back({&phi, phi.getIncomingValueForBlock(&latch), 0});
        for (const llvm::Instruction& instruction : block)
            if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
                for (const llvm::Instruction& other : block)
                    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&other);
                        store && is_stored_before(*load, *store))
                        found.push_back({load, store->getValueOperand(), store_to_load});
        return found;
    }

    // Whether `store` stores what `load` loads in the next iteration, in a private array.
    bool is_stored_before(const llvm::LoadInst& load, const llvm::StoreInst& store) {
        const llvm::Value* const to = store.getPointerOperand();
        if (load.getType() != store.getValueOperand()->getType() ||
            !llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(to)) ||
            llvm::getUnderlyingObject(to) != llvm::getUnderlyingObject(load.getPointerOperand()))
            return false;
        const auto* const from = llvm::dyn_cast<llvm::SCEVAddRecExpr>(
            evolution_.getSCEV(const_cast<llvm::Value*>(load.getPointerOperand())));
        return from && from->isAffine() && from->getLoop() == plan_.loops->getLoopFor(load.getParent()) &&
               evolution_.getMinusSCEV(evolution_.getSCEV(const_cast<llvm::Value*>(to)), from) ==
                   from->getStepRecurrence(evolution_);
    }

    // Of the longest path from the begin of a recurrence to its end; 0 when there is none.
    static double latency(const llvm::BasicBlock& block, const Recurrence& recurrence) {
        llvm::DenseMap<const llvm::Value*, double> ready{{recurrence.begin, 0}};
        for (const llvm::Instruction& instruction : block) {
            if (&instruction == recurrence.begin || llvm::isa<llvm::PHINode>(instruction) ||
                instruction.mayReadOrWriteMemory())
                continue;
            std::optional<double> latest;
            for (const llvm::Value* operand : instruction.operands())
                if (const auto found = ready.find(operand); found != ready.end())
                    latest = std::max(latest.value_or(0), found->second);
            if (latest)
                ready[&instruction] = *latest + latency_of(instruction);
        }
        const auto end = ready.find(recurrence.end);
        return end == ready.end() || recurrence.end == recurrence.begin ? 0 : end->second + recurrence.latency;
    }

    const LanePlan& plan_;
    const LaneTarget& target_;
    const double part_;
    const Chained which_;
    llvm::Function& function_;
    OwnScalarEvolution own_;
    llvm::ScalarEvolution& evolution_ = own_.evolution;
};

}  // namespace

double waited_for_chains(const LanePlan& plan, llvm::DominatorTree& dominators, const LaneTarget& target, double part,
                         Chained which) {
    return plan.loop->isInnermost() ? 0 : Chains(plan, dominators, target, part, which).all();
}

}  // namespace polder::compiler::workgroup
