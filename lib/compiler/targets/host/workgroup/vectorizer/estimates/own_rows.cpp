// A loop counts when LLVM's vectorizer will take it: one block whose accesses go from element to element, no value but counters and sums of integers from one
// iteration to the next, and few enough pairs of places to compare before the loop. Where one access is consecutive for lanes, they have a good way too.
#include "own_rows.h"

#include "lane_cost.h"
#include "targets/host/workgroup/frame/accumulators.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/own_scalar_evolution.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/IVDescriptors.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler::workgroup {

namespace {

class OwnRows {
public:
    OwnRows(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, llvm::DominatorTree& dominators,
            const llvm::TargetTransformInfo& target)
        : plan_(plan), shapes_(shapes), accesses_(accesses), target_(target),
          own_(*plan.header->getParent(), dominators, *plan.loops) {}

    double saved(llvm::Loop& loop) {
        constexpr double overhead = 2;  // of one vector of LLVM's, in vectors: tests of places before, a rest behind
        const unsigned lanes = lanes_of_row(loop);
        if (lanes <= overhead)
            return 0;
        double instructions = 0;
        for (const llvm::Instruction& one : *loop.getHeader())
            instructions += llvm::isa<llvm::PHINode, llvm::GetElementPtrInst>(one) || one.isTerminator() ? 0 : 1;
        return weight_of_block(loop.getLoopDepth() - plan_.loop->getLoopDepth()) * instructions *
               (1 - overhead / lanes);
    }

private:
    struct Place {
        const llvm::SCEV* first;
        bool is_written;
    };

    // How many iterations LLVM will run at once; 0: it will not, or lanes are as good.
    unsigned lanes_of_row(llvm::Loop& loop) {
        llvm::BasicBlock& block = *loop.getHeader();
        if (is_in_fallback_loop(*plan_.loops, &block))
            return 0;
        const bool are_of_one_length = ends_for_all_lanes(loop);
        bool has_results = false;
        for (llvm::PHINode& phi : block.phis()) {
            if (are_of_one_length && is_sum(phi, loop))
                has_results = true;
            else if (!evolution_.isSCEVable(phi.getType()) || !step_of(phi, loop))
                return 0;
        }
        unsigned bits = 8;
        llvm::SmallVector<Place> places;
        for (llvm::Instruction& one : block) {
            if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&one)) {
                if (!llvm::isTriviallyVectorizable(call->getIntrinsicID()) || !call->doesNotAccessMemory())
                    return 0;
            } else if (const llvm::Value* const address = llvm::getLoadStorePointerOperand(&one)) {
                if (loop.isLoopInvariant(address) && llvm::isa<llvm::LoadInst>(one) && shapes_.of(address).is_uniform())
                    continue;
                if (!is_on_own_row(one, *address, loop))
                    return 0;
                const bool is_written = llvm::isa<llvm::StoreInst>(one);
                has_results |= is_written;
                places.push_back({sum_of(*address, loop)->getStart(), is_written});
            } else if (one.mayReadOrWriteMemory() || one.isIntDivRem()) {
                return 0;
            }
            if (!one.getType()->isVoidTy() && !one.getType()->isPointerTy() && !llvm::isa<llvm::PHINode>(one))
                bits = std::max(bits, one.getType()->getScalarSizeInBits() & ~7U);
        }
        const auto registers = target_.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector);
        const auto lanes = static_cast<unsigned>(registers.getFixedValue() / bits);
        const unsigned iterations = evolution_.getSmallConstantTripCount(&loop);
        if (!has_results || !are_comparable(places) || (iterations != 0 && iterations < 2 * lanes))
            return 0;
        return lanes;
    }

    // Rows whose length differs between lanes, as those of sparse matrices, are often too short for LLVM's vectors.
    bool ends_for_all_lanes(const llvm::Loop& loop) const {
        const auto* const end = llvm::dyn_cast<llvm::BranchInst>(loop.getHeader()->getTerminator());
        return end && end->isConditional() && shapes_.of(end->getCondition()).is_uniform();
    }

    // Whether the iterations combine integers to one, in any order.
    static bool is_sum(llvm::PHINode& phi, llvm::Loop& loop) {
        llvm::RecurrenceDescriptor sum;
        return llvm::RecurrenceDescriptor::isReductionPHI(&phi, &loop, sum) &&
               llvm::RecurrenceDescriptor::isIntegerRecurrenceKind(sum.getRecurrenceKind());
    }

    // The value as a number that grows from iteration to iteration, if a counter of fewer bits does not wrap around, which LLVM asks before the loop. Else null.
    const llvm::SCEVAddRecExpr* sum_of(const llvm::Value& value, const llvm::Loop& loop) {
        const llvm::SCEV* const known = evolution_.getSCEV(const_cast<llvm::Value*>(&value));
        llvm::SmallVector<const llvm::SCEVPredicate*, 4> asked;
        const auto* sum = llvm::dyn_cast<llvm::SCEVAddRecExpr>(known);
        if (sum == nullptr)
            sum = evolution_.convertSCEVToAddRecWithPredicates(known, &loop, asked);
        return sum && sum->isAffine() && sum->getLoop() == &loop ? sum : nullptr;
    }

    const llvm::SCEVConstant* step_of(const llvm::Value& value, const llvm::Loop& loop) {
        const llvm::SCEVAddRecExpr* const sum = sum_of(value, loop);
        return sum ? llvm::dyn_cast<llvm::SCEVConstant>(sum->getStepRecurrence(evolution_)) : nullptr;
    }

    // Whether lanes access places that are apart, and the next iteration accesses the adjacent element.
    bool is_on_own_row(llvm::Instruction& access, const llvm::Value& address, const llvm::Loop& loop) {
        llvm::Type* const type = llvm::getLoadStoreType(&access);
        const llvm::DataLayout& layout = access.getDataLayout();
        const auto* const step = step_of(address, loop);
        return step && is_simple_access(access) && is_scalar(*type) && layout.typeSizeEqualsStoreSize(type) &&
               step->getAPInt() == layout.getTypeStoreSize(type).getFixedValue() &&
               !shapes_.of(&address).is_uniform() && !accesses_.of(access);
    }

    // LLVM compares at most eight pairs of places at run time.
    bool are_comparable(llvm::ArrayRef<Place> places) {
        constexpr unsigned pairs_max = 8;
        llvm::SmallPtrSet<const llvm::SCEV*, 8> seen, written;
        for (const Place& place : places) {
            seen.insert(place.first);
            if (place.is_written)
                written.insert(place.first);
        }
        // Two places of one buffer: an iteration may depend on the one before.
        for (const llvm::SCEV* const one : written)
            for (const llvm::SCEV* const other : seen)
                if (one != other && evolution_.getPointerBase(one) == evolution_.getPointerBase(other))
                    return false;
        const size_t reads = seen.size() - written.size();
        return written.size() * (written.size() - 1) / 2 + written.size() * reads <= pairs_max;
    }

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    const llvm::TargetTransformInfo& target_;
    OwnScalarEvolution own_;
    llvm::ScalarEvolution& evolution_ = own_.evolution;
};

// Whether the loop may leave results: it stores them, or has other values than a counter from one iteration to the next.
bool may_have_results(const llvm::Loop& loop) {
    return loop.getNumBlocks() == 1 && (llvm::hasNItemsOrMore(loop.getHeader()->phis(), 2) ||
                                        llvm::any_of(*loop.getHeader(), [](const llvm::Instruction& one) {
                                            return llvm::isa<llvm::StoreInst>(one);
                                        }));
}

}  // namespace

double saved_by_own_rows(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                         llvm::DominatorTree& dominators, const llvm::TargetTransformInfo& target, unsigned width,
                         double most) {
    llvm::SmallVector<llvm::Loop*> loops;
    for (llvm::Loop* const loop : plan.loop->getLoopsInPreorder())
        if (loop != plan.loop && may_have_results(*loop))
            loops.push_back(loop);
    if (loops.empty())
        return 0;
    OwnRows rows(plan, shapes, accesses, dominators, target);
    double saved = 0;
    for (llvm::Loop* const loop : loops)
        saved += rows.saved(*loop);
    return std::min(width * saved, most);
}

}  // namespace polder::compiler::workgroup
