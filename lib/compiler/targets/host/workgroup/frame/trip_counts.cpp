// Scalar evolution writes the number of iterations with the counters of the loops around. Each counter is replaced by its value in the
// middle iteration of its loop. The number is known when a constant remains.
#include "trip_counts.h"

#include <limits>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>

namespace polder::compiler::workgroup {

namespace {

// How many loops may depend on each other; the time doubles with each of them.
constexpr unsigned depth_max = 4;

unsigned trip_count(const llvm::Loop& loop, llvm::ScalarEvolution& evolution, unsigned depth);

class MiddleIteration : public llvm::SCEVRewriteVisitor<MiddleIteration> {
public:
    MiddleIteration(llvm::ScalarEvolution& evolution, unsigned depth)
        : llvm::SCEVRewriteVisitor<MiddleIteration>(evolution), depth_(depth) {}

    // As SCEVRewriteVisitor wants it. NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method)
    const llvm::SCEV* visitAddRecExpr(const llvm::SCEVAddRecExpr* counter) {
        const unsigned count = counter->isAffine() ? trip_count(*counter->getLoop(), SE, depth_) : 0;
        if (count == 0)
            return counter;
        return visit(counter->evaluateAtIteration(SE.getConstant(counter->getType(), (count - 1) / 2), SE));
    }

private:
    const unsigned depth_;
};

unsigned trip_count(const llvm::Loop& loop, llvm::ScalarEvolution& evolution, unsigned depth) {
    if (const unsigned constant = evolution.getSmallConstantTripCount(&loop))
        return constant;
    const llvm::SCEV* const taken = evolution.getBackedgeTakenCount(&loop);
    if (depth == 0 || llvm::isa<llvm::SCEVCouldNotCompute>(taken))
        return 0;
    const auto* const middle = llvm::dyn_cast<llvm::SCEVConstant>(MiddleIteration(evolution, depth - 1).visit(taken));
    constexpr unsigned bits_max = std::numeric_limits<unsigned>::digits - 1;
    if (middle == nullptr || middle->getAPInt().getActiveBits() > bits_max)
        return 0;
    return static_cast<unsigned>(middle->getAPInt().getZExtValue()) + 1;
}

}  // namespace

unsigned known_trip_count(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    return trip_count(loop, evolution, depth_max);
}

}  // namespace polder::compiler::workgroup
