// LLVM's ScalarEvolution finds the loads that walk along rows, and the distances between their copies. LLVM's UnrollLoop makes the copies.
#include "row_loops.h"

#include "targets/host/workgroup/frame/accumulators.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/own_scalar_evolution.h"
#include "targets/host/workgroup/vectorizer/estimates/lane_cost.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>
#include <map>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned iterations_at_once = lane_structure_max;
constexpr size_t iteration_instructions_max = 60;  // of one iteration

class RowLoops {
public:
    RowLoops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, llvm::DominatorTree& dominators,
             const llvm::TargetTransformInfo& target)
        : plan_(plan), shapes_(shapes), accesses_(accesses), dominators_(dominators), target_(target),
          function_(*plan.header->getParent()), own_(function_, dominators, *plan.loops) {}

    unsigned unroll() {
        llvm::SmallVector<llvm::Loop*> found;
        for (llvm::Loop* loop : plan_.loop->getLoopsInPreorder())
            if (loop != plan_.loop && is_row_loop(*loop))
                found.push_back(loop);
        unsigned unrolled = 0;
        for (llvm::Loop* loop : found)
            unrolled += unroll(*loop) ? 1 : 0;
        return unrolled;
    }

    double saved(unsigned width, Gathers gathers) {
        ApartCosts apart(plan_, shapes_, gathers);
        double all = 0;
        for (const llvm::Loop* loop : plan_.loop->getLoopsInPreorder())
            if (loop != plan_.loop && is_row_loop(*loop) && has_sum_in_order(*loop->getHeader())) {
                const double weight = weight_of_block(loop->getLoopDepth() - plan_.loop->getLoopDepth());
                for (const llvm::Instruction& one : *loop->getHeader())
                    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&one); load && row_loads_.contains(load))
                        all += weight * (apart.of(one, width) -
                                         cost_of_structure_element(*one.getType(), iterations_at_once, width));
            }
        return all / width;
    }

private:
    bool is_row_loop(const llvm::Loop& loop) {
        llvm::BasicBlock* const block = loop.getHeader();
        const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        if (loop.getNumBlocks() != 1 || !branch || !branch->isConditional() ||
            block->size() > iteration_instructions_max || !shapes_.of(branch->getCondition()).is_uniform() ||
            is_in_fallback_loop(*plan_.loops, block) ||
            llvm::getBooleanLoopAttribute(&loop, "llvm.loop.unroll.disable"))
            return false;
        const unsigned iterations = evolution_.getSmallConstantTripCount(&loop);
        if (iterations != 0 && iterations < iterations_at_once)
            return false;
        if (llvm::any_of(*block, [](const llvm::Instruction& one) { return one.mayWriteToMemory(); }))
            return writes_row(loop);
        const size_t before = row_loads_.size();
        for (llvm::Instruction& one : *block)
            if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&one); load && walks_along_row(*load, loop))
                row_loads_.insert(load);
        return row_loads_.size() > before;
    }

    // Whether each lane writes words side by side, and the loop reads nothing that they may change.
    bool writes_row(const llvm::Loop& loop) {
        constexpr uint64_t word_bytes = 4;
        llvm::StoreInst* only = nullptr;
        for (llvm::Instruction& one : *loop.getHeader()) {
            if (!one.mayReadOrWriteMemory() || is_load_of_private(one))
                continue;
            auto* const store = llvm::dyn_cast<llvm::StoreInst>(&one);
            if (store == nullptr || only != nullptr)
                return false;
            only = store;
        }
        if (only == nullptr || !is_simple_access(*only) || !is_scalar(*only->getValueOperand()->getType()))
            return false;
        const llvm::Value* const address = only->getPointerOperand();
        const llvm::DataLayout& layout = only->getDataLayout();
        return layout.getTypeStoreSize(only->getValueOperand()->getType()) == word_bytes &&
               layout.typeSizeEqualsStoreSize(only->getValueOperand()->getType()) &&
               !shapes_.of(address).is_uniform() && accesses_.is_stored_apart(*only) &&
               accesses_.number_with(*only, LaneAccesses::Stored::all_lanes).size() == 1 &&
               !plan_.is_masked(loop.getHeader()) &&
               llvm::isa<llvm::Argument, llvm::LoadInst>(llvm::getUnderlyingObject(address, 0)) &&
               steps_to_next(*only, loop);
    }

    // Whether the next iteration accesses the adjacent element.
    bool steps_to_next(llvm::Instruction& access, const llvm::Loop& loop) {
        const auto* sum = llvm::dyn_cast<llvm::SCEVAddRecExpr>(
            evolution_.getSCEV(const_cast<llvm::Value*>(llvm::getLoadStorePointerOperand(&access))));
        const auto* step = sum && sum->getLoop() == &loop
                               ? llvm::dyn_cast<llvm::SCEVConstant>(sum->getStepRecurrence(evolution_))
                               : nullptr;
        return step != nullptr &&
               step->getAPInt().abs() ==
                   access.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&access)).getFixedValue();
    }

    // Whether the loop adds floating-point numbers in the order of the program. LLVM vectorizes other loops of one work-item along the row.
    static bool has_sum_in_order(const llvm::BasicBlock& block) {
        return llvm::any_of(block.phis(), [&](const llvm::PHINode& phi) {
            const auto* const next = llvm::dyn_cast<llvm::Instruction>(phi.getIncomingValueForBlock(&block));
            const auto* const call = llvm::dyn_cast_or_null<llvm::IntrinsicInst>(next);
            const bool is_sum = next && (next->getOpcode() == llvm::Instruction::FAdd ||
                                         (call && call->getIntrinsicID() == llvm::Intrinsic::fmuladd));
            return is_sum && !next->hasAllowReassoc();
        });
    }

    // Whether each lane loads from an address without a constant step, and the next iteration loads the adjacent element.
    bool walks_along_row(llvm::LoadInst& load, const llvm::Loop& loop) {
        llvm::Value* const address = load.getPointerOperand();
        const llvm::DataLayout& layout = load.getDataLayout();
        llvm::Type* const type = load.getType();
        if (!is_simple_access(load) || !is_scalar(*type) || !layout.typeSizeEqualsStoreSize(type) ||
            layout.getTypeStoreSize(type) != layout.getTypeAllocSize(type) || shapes_.of(address).is_uniform() ||
            accesses_.of(load) || accesses_.structure_of(load).size() > 1 ||
            !accesses_.is_loaded_at_once(*type, iterations_at_once) ||
            llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address, 0)))
            return false;
        return steps_to_next(load, loop);
    }

    bool unroll(llvm::Loop& loop) {
        llvm::UnrollLoopOptions options{};
        options.Count = iterations_at_once;
        options.Runtime = true;
        constexpr unsigned cheap = 4;
        options.SCEVExpansionBudget = cheap;
        llvm::OptimizationRemarkEmitter remarks(&function_);
        llvm::Loop* rest = nullptr;
        const auto result = llvm::UnrollLoop(&loop, options, plan_.loops, &evolution_, &dominators_, &own_.assumptions,
                                             &target_, &remarks, /*PreserveLCSSA=*/true, &rest);
        if (rest != nullptr)  // it has few iterations, so the estimates leave it out
            llvm::addStringMetadataToLoop(rest, fallback_loop_tag, 1);
        if (result != llvm::LoopUnrollResult::PartiallyUnrolled)
            return result == llvm::LoopUnrollResult::FullyUnrolled;
        loop.setLoopAlreadyUnrolled();
        relate_addresses(*loop.getHeader());
        return true;
    }

    // Writes each access's address as the address of an earlier one plus a constant, where their difference is constant.
    void relate_addresses(llvm::BasicBlock& block) {
        llvm::SmallVector<llvm::Instruction*> bases;
        for (llvm::Instruction& instruction : block)
            if (is_simple_access(instruction) && !relate(instruction, bases))
                bases.push_back(&instruction);
        for (llvm::Instruction* base : bases)
            if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(base); load && row_loads_.contains(load))
                split_address(*load, block);
    }

    // Writes an address that varies between lanes as a row, which is computed before the loop, and an offset that is the same for all lanes: then
    // only the rows have to be extracted from a vector. LLVM has done so already, unless several addresses share an index.
    void split_address(llvm::LoadInst& load, llvm::BasicBlock& block) {
        llvm::Value* const address = load.getPointerOperand();
        const llvm::Loop* const loop = plan_.loops->getLoopFor(&block);
        const auto* sum = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(address));
        const auto* step = sum ? llvm::dyn_cast<llvm::SCEVConstant>(sum->getStepRecurrence(evolution_)) : nullptr;
        llvm::BasicBlock* const before = loop->getLoopPreheader();
        if (step == nullptr || sum->getLoop() != loop || before == nullptr)
            return;
        llvm::SCEVExpander expander(evolution_, "row", /*PreserveLCSSA=*/true);
        llvm::Instruction* const end = before->getTerminator();
        if (!expander.isSafeToExpandAt(sum->getStart(), end))
            return;
        llvm::Value* const row = expander.expandCodeFor(sum->getStart(), address->getType(), end);
        llvm::PHINode*& offset = offsets_[{&block, step->getAPInt().getSExtValue()}];
        llvm::IRBuilder<> at(&block, block.begin());
        if (offset == nullptr) {
            offset = at.CreatePHI(at.getInt64Ty(), 2, "row.offset");
            at.SetInsertPoint(block.getTerminator());
            offset->addIncoming(at.getInt64(0), before);
            offset->addIncoming(at.CreateAdd(offset, at.getInt64(step->getAPInt().getZExtValue())), &block);
        }
        llvm::Value* const place =
            llvm::GetElementPtrInst::Create(at.getInt8Ty(), row, {offset}, "", block.getFirstNonPHIIt());
        address->replaceUsesWithIf(place, [&](const llvm::Use& use) {
            return llvm::cast<llvm::Instruction>(use.getUser())->getParent() == &block && use.getUser() != place;
        });
    }

    bool relate(llvm::Instruction& access, llvm::ArrayRef<llvm::Instruction*> bases) {
        auto* const address = const_cast<llvm::Value*>(llvm::getLoadStorePointerOperand(&access));
        for (const llvm::Instruction* base : bases) {
            auto* const from = const_cast<llvm::Value*>(llvm::getLoadStorePointerOperand(base));
            if (base->getOpcode() != access.getOpcode() ||
                llvm::getLoadStoreType(base) != llvm::getLoadStoreType(&access) ||
                from->getType() != address->getType() ||
                llvm::getUnderlyingObject(from) != llvm::getUnderlyingObject(address))
                continue;
            const auto* distance = llvm::dyn_cast<llvm::SCEVConstant>(
                evolution_.getMinusSCEV(evolution_.getSCEV(address), evolution_.getSCEV(from)));
            if (distance == nullptr)
                continue;
            llvm::IRBuilder<> at(&access);
            const unsigned operand = llvm::isa<llvm::LoadInst>(access) ? llvm::LoadInst::getPointerOperandIndex()
                                                                       : llvm::StoreInst::getPointerOperandIndex();
            access.setOperand(operand, at.CreateGEP(at.getInt8Ty(), from, at.getInt(distance->getAPInt())));
            return true;
        }
        return false;
    }

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    llvm::DominatorTree& dominators_;
    const llvm::TargetTransformInfo& target_;
    llvm::Function& function_;
    OwnScalarEvolution own_;
    llvm::ScalarEvolution& evolution_ = own_.evolution;
    llvm::SmallPtrSet<const llvm::LoadInst*, 8> row_loads_;  // of one iteration
    std::map<std::pair<llvm::BasicBlock*, int64_t>, llvm::PHINode*> offsets_;  // by loop and step
};

}  // namespace

unsigned unroll_row_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                          llvm::DominatorTree& dominators, const llvm::TargetTransformInfo& target) {
    // Most kernels have no loop: they need no analyses.
    return plan.loop->isInnermost() ? 0 : RowLoops(plan, shapes, accesses, dominators, target).unroll();
}

double saved_by_row_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                          llvm::DominatorTree& dominators, const llvm::TargetTransformInfo& target, unsigned width,
                          Gathers gathers) {
    return plan.loop->isInnermost() ? 0 : RowLoops(plan, shapes, accesses, dominators, target).saved(width, gathers);
}

}  // namespace polder::compiler::workgroup
