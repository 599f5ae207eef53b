// A loop ends when its counter, a phi at its begin that is not negative and grows in each round, reaches a limit. Only a comparison that each round
// makes counts.
#include "loop_rounds.h"

#include "intrinsics.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler {
namespace {

const llvm::Value* without_casts(const llvm::Value* value) {
    const auto* cast = llvm::dyn_cast<llvm::CastInst>(value);
    return cast != nullptr && cast->getType()->isIntegerTy() ? without_casts(cast->getOperand(0)) : value;
}

// An id or a size: not negative also as an int, because no launch is so large that quick code suits it.
const llvm::Function* query(const llvm::Value& value) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(without_casts(&value));
    const llvm::Function* callee = call != nullptr ? call->getCalledFunction() : nullptr;
    const bool is_one = callee != nullptr && callee->isDeclaration() && !callee->getName().starts_with("_polder_") &&
                        is_work_group_intrinsic(std::string_view{callee->getName()});
    return is_one ? callee : nullptr;
}

bool is_size(const llvm::Value& value) {
    const llvm::Function* const callee = query(value);
    return callee != nullptr && callee->getName().contains("_size");
}

bool is_not_negative(const llvm::Value& value) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&value);
    return constant != nullptr ? !constant->isNegative() : query(value) != nullptr;
}

// Positive, and so small that a counter below a limit does not wrap around.
bool is_step(const llvm::Value& value) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&value);
    return constant != nullptr ? constant->getValue().isStrictlyPositive() && constant->getValue().getActiveBits() <= 16
                               : is_size(value);
}

// The counter that `next` is a step behind, also as a wider number that is truncated again.
const llvm::PHINode* before_step(const llvm::Value& next) {
    using namespace llvm::PatternMatch;
    llvm::Value *counter = nullptr, *step = nullptr;
    if (!match(&next, m_TruncOrSelf(m_c_Add(m_SExtOrSelf(m_Value(counter)), m_Value(step)))))
        return nullptr;
    for (const auto& [from, by] : {std::pair{counter, step}, {step, counter}}) {
        const auto* cast = llvm::dyn_cast<llvm::CastInst>(from);
        const auto* phi = llvm::dyn_cast<llvm::PHINode>(cast != nullptr ? cast->getOperand(0) : from);
        if (phi != nullptr && is_step(*by))
            return phi;
    }
    return nullptr;
}

// Whether `compared` is a counter of `loop`, or its next value. Narrow counters wrap around below wide limits.
bool counts_up(const llvm::Value& compared, const llvm::Loop& loop) {
    constexpr unsigned bits_min = 32;
    const llvm::Value* value = nullptr;
    if (!match(&compared, llvm::PatternMatch::m_ZExtOrSExtOrSelf(llvm::PatternMatch::m_Value(value))))
        return false;
    const auto* phi = llvm::dyn_cast<llvm::PHINode>(value);
    if (phi == nullptr)
        phi = before_step(*value);
    const auto is_wide = [](const llvm::Type& type) {
        return type.isIntegerTy() && type.getIntegerBitWidth() >= bits_min;
    };
    if (phi == nullptr || phi->getParent() != loop.getHeader() || !is_wide(*phi->getType()) ||
        !is_wide(*value->getType()))
        return false;
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        const llvm::Value& incoming = *phi->getIncomingValue(i);
        if (loop.contains(phi->getIncomingBlock(i)) ? before_step(incoming) != phi : !is_not_negative(incoming))
            return false;
    }
    return true;
}

std::optional<Rounds> limit_of(const llvm::Value& limit) {
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&limit))
        return constant->getValue().getActiveBits() <= 20 ? std::optional(Rounds{constant->getZExtValue() + 1, nullptr})
                                                          : std::nullopt;
    const auto* argument = llvm::dyn_cast<llvm::Argument>(without_casts(&limit));
    return argument != nullptr && argument->getType()->isIntegerTy() ? std::optional(Rounds{1, argument})
                                                                     : std::nullopt;
}

std::optional<Rounds> rounds_until(const llvm::BasicBlock& end, const llvm::Loop& loop) {
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(end.getTerminator());
    const auto* compare =
        branch != nullptr && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
    if (compare == nullptr)
        return std::nullopt;
    const bool stays_if_true = loop.contains(branch->getSuccessor(0));
    const llvm::CmpInst::Predicate stays =
        stays_if_true ? compare->getPredicate() : llvm::CmpInst::getInversePredicate(compare->getPredicate());
    const bool is_below = stays == llvm::CmpInst::ICMP_SLT || stays == llvm::CmpInst::ICMP_ULT;
    return is_below && counts_up(*compare->getOperand(0), loop) ? limit_of(*compare->getOperand(1)) : std::nullopt;
}

}  // namespace

std::optional<Rounds> rounds_of(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
    llvm::SmallVector<llvm::BasicBlock*> latches, ends;
    loop.getLoopLatches(latches);
    loop.getExitingBlocks(ends);
    for (const llvm::BasicBlock* end : ends)
        if (llvm::all_of(latches, [&](const llvm::BasicBlock* latch) { return dominators.dominates(end, latch); }))
            if (const auto rounds = rounds_until(*end, loop))
                return rounds;
    return std::nullopt;
}

}  // namespace polder::compiler
