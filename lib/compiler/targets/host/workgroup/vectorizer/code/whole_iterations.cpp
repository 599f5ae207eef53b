#include "whole_iterations.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

// Whether the counter, which has these steps, reaches the bound from the side on which lanes stay.
bool approaches(llvm::CmpInst::Predicate stays, int64_t step) {
    switch (stays) {
    case llvm::CmpInst::ICMP_NE: return step == 1 || step == -1;
    case llvm::CmpInst::ICMP_ULT:
    case llvm::CmpInst::ICMP_ULE:
    case llvm::CmpInst::ICMP_SLT:
    case llvm::CmpInst::ICMP_SLE: return step > 0;
    case llvm::CmpInst::ICMP_UGT:
    case llvm::CmpInst::ICMP_UGE:
    case llvm::CmpInst::ICMP_SGT:
    case llvm::CmpInst::ICMP_SGE: return step < 0;
    default: return false;
    }
}

// The exit whose condition compares `compared` with `bound`; nothing where `compared` is no counter.
std::optional<OrderedExit> counted(const llvm::Loop& loop, llvm::Value* compared, llvm::Value* bound,
                                   llvm::CmpInst::Predicate stays) {
    using namespace llvm::PatternMatch;
    if (!loop.isLoopInvariant(bound))
        return std::nullopt;
    for (llvm::PHINode& phi : loop.getHeader()->phis()) {
        llvm::Value* const next = phi.getIncomingValueForBlock(loop.getHeader());
        const llvm::APInt* step = nullptr;
        if ((compared == &phi || compared == next) && match(next, m_Add(m_Specific(&phi), m_APInt(step))) &&
            step->isSignedIntN(32) && approaches(stays, step->getSExtValue()))
            return OrderedExit{&phi, bound, step->getSExtValue(), stays, compared == next};
    }
    return std::nullopt;
}

}  // namespace

std::optional<OrderedExit> ordered_exit(const llvm::Loop& loop, const LaneShapes& shapes) {
    constexpr size_t instructions_max = 40;
    llvm::BasicBlock* const block = loop.getHeader();
    auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (loop.getLoopLatch() != block || !branch || !branch->isConditional() || block->size() > instructions_max)
        return std::nullopt;
    auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
    if (!compare || !compare->getOperand(0)->getType()->isIntegerTy())
        return std::nullopt;
    llvm::Value *const left = compare->getOperand(0), *const right = compare->getOperand(1);
    if (!shapes.of(left).is_strided() || !shapes.of(right).is_strided() ||
        shapes.of(left).stride == shapes.of(right).stride)
        return std::nullopt;
    const llvm::CmpInst::Predicate stays =
        branch->getSuccessor(0) == block ? compare->getPredicate() : compare->getInversePredicate();
    auto found = counted(loop, left, right, stays);
    return found ? found : counted(loop, right, left, llvm::CmpInst::getSwappedPredicate(stays));
}

llvm::Value* whole_iterations(llvm::IRBuilder<>& at, const OrderedExit& exit, llvm::Value* counters,
                              llvm::Value* bounds, llvm::Value* entering) {
    llvm::Type* const type = counters->getType();
    if (exit.is_next)
        counters = at.CreateAdd(counters, llvm::ConstantInt::getSigned(type, exit.step));
    const bool grows = exit.step > 0;
    llvm::Value* distances = grows ? at.CreateSub(bounds, counters) : at.CreateSub(counters, bounds);
    if (exit.stays != llvm::CmpInst::ICMP_NE)
        distances = at.CreateSelect(at.CreateICmp(llvm::CmpInst::getStrictPredicate(exit.stays), counters, bounds),
                                    distances, llvm::Constant::getNullValue(type));
    llvm::Value* const of_entering = at.CreateSelect(entering, distances, llvm::Constant::getAllOnesValue(type));
    llvm::Value* const least = at.CreateIntMinReduce(of_entering, false);
    const auto steps = static_cast<uint64_t>(grows ? exit.step : -exit.step);
    return steps == 1 ? least : at.CreateUDiv(least, llvm::ConstantInt::get(least->getType(), steps));
}

}  // namespace polder::compiler::workgroup
