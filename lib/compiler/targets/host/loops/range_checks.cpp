// The operands of a tree of `and` (or of `or`) may be in any order, so each comparison with 0 is paired with one of the same number with a bound.
// Both may be written with a sum: `x + 1 >= 0` is x > -2, beside x + 1 < width.
#include "range_checks.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>
#include <optional>

namespace polder::compiler {
namespace {

using llvm::Instruction;
using namespace llvm::PatternMatch;

// `base + offset`, which does not wrap around.
struct Sum {
    llvm::Value* base;
    llvm::APInt offset;
};

Sum sum_of(llvm::Value* value) {
    llvm::Value* base = nullptr;
    const llvm::APInt* offset = nullptr;
    if (match(value, m_NSWAdd(m_Value(base), m_APInt(offset))))
        return {base, *offset};
    return {value, llvm::APInt(value->getType()->getScalarSizeInBits(), 0)};
}

// A comparison as `left < right`, or its opposite.
struct Less {
    llvm::Value *left, *right;
};

std::optional<Less> less_of(llvm::Value* condition, bool is_opposite) {
    auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(condition);
    if (comparison == nullptr)
        return std::nullopt;
    const auto predicate = is_opposite ? comparison->getInversePredicate() : comparison->getPredicate();
    if (predicate == llvm::CmpInst::ICMP_SLT)
        return Less{comparison->getOperand(0), comparison->getOperand(1)};
    if (predicate == llvm::CmpInst::ICMP_SGT)
        return Less{comparison->getOperand(1), comparison->getOperand(0)};
    return std::nullopt;
}

// The number that is at least 0 where the condition holds, as a sum.
std::optional<Sum> not_negative(llvm::Value* condition, bool is_opposite) {
    auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(condition);
    const llvm::APInt* bound = nullptr;
    if (comparison == nullptr || !match(comparison->getOperand(1), m_APInt(bound)))
        return std::nullopt;
    const auto predicate = is_opposite ? comparison->getInversePredicate() : comparison->getPredicate();
    const bool is_strict = predicate == llvm::CmpInst::ICMP_SGT;
    if (!is_strict && predicate != llvm::CmpInst::ICMP_SGE)
        return std::nullopt;
    Sum sum = sum_of(comparison->getOperand(0));
    bool overflows = false, one_overflows = false;
    sum.offset = sum.offset.ssub_ov(*bound, overflows);
    sum.offset = sum.offset.ssub_ov(llvm::APInt(bound->getBitWidth(), is_strict ? 1 : 0), one_overflows);
    return overflows || one_overflows ? std::nullopt : std::optional(sum);
}

class RangeChecks {
public:
    explicit RangeChecks(llvm::Function& function) : dominators_(function), loops_(dominators_) {}

    // `root` is the last operation of a tree.
    unsigned join_in(Instruction& root) {
        const bool is_or = root.getOpcode() == Instruction::Or;
        llvm::SmallVector<llvm::Use*> leaves;
        find_leaves(root, root.getOpcode(), leaves);
        unsigned joined = 0;
        for (llvm::Use*& lower : leaves) {
            const auto sum = lower ? not_negative(lower->get(), is_or) : std::nullopt;
            if (!sum)
                continue;
            for (llvm::Use*& upper : leaves)
                if (upper != nullptr && &upper != &lower && join(*lower, *upper, *sum, is_or)) {
                    ++joined;
                    upper = nullptr;
                    break;
                }
        }
        return joined;
    }

    // Drops the constants that comparisons with 0 have become.
    void simplify() const {
        for (llvm::BasicBlock* block : changed_)
            llvm::SimplifyInstructionsInBlock(block);
    }

    // `first ? second : false`, `first ? true : second`: where the first one decides, the second one may have an undefined bound.
    unsigned join_chosen(llvm::SelectInst& select) {
        llvm::Value *first = nullptr, *second = nullptr;
        const bool is_or = match(&select, m_LogicalOr(m_Value(first), m_Value(second)));
        if (!is_or && !match(&select, m_LogicalAnd(m_Value(first), m_Value(second))))
            return 0;
        for (auto [lower, upper] : {std::pair(first, second), std::pair(second, first)}) {
            const auto sum = not_negative(lower, is_or);
            const auto less = less_of(upper, is_or);
            if (!sum || !less || !sum->offset.isZero() || sum->base != less->left)
                continue;
            llvm::Value* const bound = bound_before_loops(*less->right, select);
            if (bound == nullptr)
                continue;
            llvm::IRBuilder<> at(&select);
            select.replaceAllUsesWith(compare(at, *less->left, *bound, is_or));
            llvm::RecursivelyDeleteTriviallyDeadInstructions(&select);
            return 1;
        }
        return 0;
    }

private:
    static void find_leaves(Instruction& node, unsigned opcode, llvm::SmallVectorImpl<llvm::Use*>& leaves) {
        for (llvm::Use& operand : node.operands()) {
            auto* const inner = llvm::dyn_cast<llvm::BinaryOperator>(operand.get());
            if (inner != nullptr && inner->getOpcode() == opcode && inner->hasOneUse())
                find_leaves(*inner, opcode, leaves);
            else
                leaves.push_back(&operand);
        }
    }

    bool join(llvm::Use& lower, llvm::Use& upper, const Sum& least, bool is_or) {
        const auto less = less_of(upper.get(), is_or);
        if (!less)
            return false;
        const Sum sum = sum_of(less->left);
        if (sum.base != least.base || sum.offset != least.offset)
            return false;
        auto& place = llvm::cast<Instruction>(*upper.getUser());
        llvm::Value* const bound = bound_before_loops(*less->right, place);
        if (bound == nullptr)
            return false;
        llvm::IRBuilder<> at(&place);
        exchange(upper, compare(at, *less->left, *bound, is_or));
        exchange(lower,
                 is_or ? llvm::ConstantInt::getFalse(lower->getType()) : llvm::ConstantInt::getTrue(lower->getType()));
        return true;
    }

    // max(bound, 0), computed before all loops that do not change the bound; null where that is not before a loop.
    llvm::Value* bound_before_loops(llvm::Value& bound, const Instruction& use) {
        const llvm::Loop* outermost = nullptr;
        for (const llvm::Loop* loop = loops_.getLoopFor(use.getParent());
             loop != nullptr && loop->isLoopInvariant(&bound) && loop->getLoopPreheader() != nullptr;
             loop = loop->getParentLoop())
            outermost = loop;
        if (outermost == nullptr || llvm::isa<llvm::Constant>(bound))
            return nullptr;
        llvm::Value*& known = bounds_[{&bound, outermost}];
        if (known == nullptr) {
            llvm::IRBuilder<> at(outermost->getLoopPreheader()->getTerminator());
            llvm::Value* const defined = at.CreateFreeze(&bound);
            known =
                at.CreateBinaryIntrinsic(llvm::Intrinsic::smax, defined, llvm::Constant::getNullValue(bound.getType()));
        }
        return known;
    }

    static llvm::Value* compare(llvm::IRBuilder<>& at, llvm::Value& number, llvm::Value& bound, bool is_or) {
        return is_or ? at.CreateICmpUGE(&number, &bound) : at.CreateICmpULT(&number, &bound);
    }

    void exchange(llvm::Use& operand, llvm::Value* value) {
        llvm::Value* const old = operand.get();
        operand.set(value);
        llvm::RecursivelyDeleteTriviallyDeadInstructions(old);
        changed_.insert(llvm::cast<Instruction>(operand.getUser())->getParent());
    }

    llvm::DominatorTree dominators_;
    llvm::LoopInfo loops_;
    llvm::DenseMap<std::pair<llvm::Value*, const llvm::Loop*>, llvm::Value*> bounds_;
    llvm::SetVector<llvm::BasicBlock*> changed_;
};

bool is_root(const Instruction& instruction) {
    if (!llvm::isa<llvm::BinaryOperator>(instruction) || !instruction.getType()->isIntOrIntVectorTy(1) ||
        (instruction.getOpcode() != Instruction::And && instruction.getOpcode() != Instruction::Or))
        return false;
    const auto* const user = instruction.hasOneUse() ? llvm::dyn_cast<Instruction>(instruction.user_back()) : nullptr;
    return user == nullptr || user->getOpcode() != instruction.getOpcode();
}

}  // namespace

unsigned join_range_checks(llvm::Function& function, const llvm::TargetMachine& machine) {
    const bool compares_vectors =
        !machine.getTargetTriple().isX86() || machine.getMCSubtargetInfo()->checkFeatures("+avx512vl");
    llvm::SmallVector<Instruction*> trees, choices;
    for (Instruction& instruction : llvm::instructions(function)) {
        if (instruction.getType()->isVectorTy() && !compares_vectors)
            continue;
        if (is_root(instruction))
            trees.push_back(&instruction);
        else if (llvm::isa<llvm::SelectInst>(instruction) && instruction.getType()->isIntOrIntVectorTy(1))
            choices.push_back(&instruction);
    }
    if (trees.empty() && choices.empty())
        return 0;
    RangeChecks checks(function);
    unsigned joined = 0;
    for (Instruction* root : trees)
        joined += checks.join_in(*root);
    for (Instruction* choice : choices)
        joined += checks.join_chosen(llvm::cast<llvm::SelectInst>(*choice));
    checks.simplify();
    return joined;
}

}  // namespace polder::compiler
