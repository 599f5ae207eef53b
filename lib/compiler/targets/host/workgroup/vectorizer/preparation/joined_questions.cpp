// question_of() finds the comparisons: with 0, or with a power of two. The numbers that are the same for all work-items are joined and compared before the
// loop, the others in it, but for those that the loop's counter and known bits keep below the compared bit.
#include "joined_questions.h"

#include "targets/host/workgroup/frame/moved_invariants.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

namespace patterns = llvm::PatternMatch;

// Whether a bit from `first_bit` on is set in a number that joins others, or in none of them.
struct Question {
    llvm::ICmpInst* compare = nullptr;
    llvm::Value* joined = nullptr;
    unsigned first_bit = 0;
    bool is_truncated = false;  // only the lower bits of the numbers are compared
    bool asks_for_any = false;
};

std::optional<Question> question_of(llvm::ICmpInst& compare) {
    llvm::Value* number = nullptr;
    const llvm::APInt* bound = nullptr;
    llvm::CmpPredicate predicate;
    if (!patterns::match(&compare, patterns::m_ICmp(predicate, patterns::m_Value(number), patterns::m_APInt(bound))) ||
        !number->getType()->isIntegerTy())
        return std::nullopt;
    Question question{.compare = &compare, .joined = number};
    if (predicate == llvm::CmpInst::ICMP_SLT && bound->isZero()) {
        question.first_bit = bound->getBitWidth() - 1;
        question.asks_for_any = true;
    } else if (bound->isZero() && llvm::ICmpInst::isEquality(predicate)) {
        question.asks_for_any = predicate == llvm::CmpInst::ICMP_NE;
    } else if (predicate == llvm::CmpInst::ICMP_SGT && bound->isAllOnes()) {
        question.first_bit = bound->getBitWidth() - 1;
    } else if (predicate == llvm::CmpInst::ICMP_UGT && bound->isMask()) {
        question.first_bit = bound->countr_one();
        question.asks_for_any = true;
    } else if (predicate == llvm::CmpInst::ICMP_ULT && bound->isPowerOf2()) {
        question.first_bit = bound->countr_zero();
    } else {
        return std::nullopt;
    }
    question.is_truncated = patterns::match(number, patterns::m_Trunc(patterns::m_Value(question.joined)));
    return question;
}

// The numbers whose bits are joined. A sum that is written as a disjunction is one number.
llvm::SmallVector<llvm::Value*, 4> numbers_in(llvm::Value& joined) {
    constexpr size_t numbers_max = 4;
    llvm::SmallVector<llvm::Value*, 4> numbers, todo{&joined};
    while (!todo.empty()) {
        llvm::Value* const value = todo.pop_back_val();
        const auto* const either = llvm::dyn_cast<llvm::PossiblyDisjointInst>(value);
        if (either && !either->isDisjoint() && numbers.size() + todo.size() + 2 <= numbers_max)
            todo.append({either->getOperand(1), either->getOperand(0)});
        else
            numbers.push_back(value);
    }
    return numbers;
}

class Separation {
public:
    explicit Separation(llvm::Loop& loop) : loop_(loop), preheader_(*loop.getLoopPreheader()), invariants_(loop) {}

    void separate(const Question& question) {
        llvm::SmallVector<llvm::Value*, 4> common, own;
        bool has_own = false;
        for (llvm::Value* const number : numbers_in(*question.joined)) {
            if (invariants_.move_out(*number)) {
                common.push_back(number);
                continue;
            }
            has_own = true;
            if (!is_surely_below(*number, question))
                own.push_back(number);
        }
        if (common.empty() || !has_own)
            return;
        llvm::IRBuilder<> before(preheader_.getTerminator()), at(question.compare);
        llvm::Value* answer = asked(before, common, question);
        if (!own.empty()) {
            llvm::Value* const of_own = asked(at, own, question);
            answer = question.asks_for_any ? at.CreateOr(of_own, answer) : at.CreateAnd(of_own, answer);
        }
        question.compare->replaceAllUsesWith(answer);
    }

private:
    static llvm::Value* asked(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> numbers, const Question& question) {
        llvm::ICmpInst& compare = *question.compare;
        llvm::Value* joined = at.CreateOr(numbers);
        if (question.is_truncated)
            joined = at.CreateTrunc(joined, compare.getOperand(0)->getType());
        return at.CreateICmp(compare.getPredicate(), joined, compare.getOperand(1));
    }

    bool is_surely_below(const llvm::Value& number, const Question& question) const {
        const std::optional<uint64_t> most = most_of(number);
        return most && question.first_bit < 64 && *most >> question.first_bit == 0;
    }

    // A number that the value does not exceed: that of the loop's counter and a number before the loop. Nothing where it is not known.
    std::optional<uint64_t> most_of(const llvm::Value& value) const {
        constexpr uint64_t summand_max = uint64_t{1} << 62;
        const llvm::BinaryOperator* const sum = llvm::dyn_cast<llvm::BinaryOperator>(&value);
        const auto* const either = llvm::dyn_cast<llvm::PossiblyDisjointInst>(&value);
        if (sum && (sum->getOpcode() == llvm::Instruction::Add || (either && either->isDisjoint()))) {
            const auto left = most_of(*sum->getOperand(0)), right = most_of(*sum->getOperand(1));
            const unsigned bits = sum->getType()->getIntegerBitWidth();
            const bool fits = left && right && *left < summand_max && *right < summand_max &&
                              (bits >= 64 || (*left + *right) >> bits == 0);
            return fits ? std::optional(*left + *right) : std::nullopt;
        }
        const llvm::Value* const bounded = &value == counter() ? count() : &value;
        if (bounded == nullptr)
            return std::nullopt;
        const llvm::KnownBits bits = llvm::computeKnownBits(bounded, preheader_.getDataLayout());
        return bits.getMaxValue().getActiveBits() <= 62 ? std::optional(bits.getMaxValue().getZExtValue())
                                                        : std::nullopt;
    }

    // The loop's counter, if it begins at 0 and goes up to `count()` in steps of 1.
    const llvm::PHINode* counter() const {
        const auto* const compare = last_compare();
        const auto* const next = compare ? llvm::dyn_cast<llvm::BinaryOperator>(compare->getOperand(0)) : nullptr;
        const auto* const phi = next ? llvm::dyn_cast<llvm::PHINode>(next->getOperand(0)) : nullptr;
        const bool counts = phi && phi->getParent() == loop_.getHeader() &&
                            patterns::match(next, patterns::m_Add(patterns::m_Value(), patterns::m_One())) &&
                            phi->getIncomingValueForBlock(loop_.getLoopLatch()) == next &&
                            patterns::match(phi->getIncomingValueForBlock(&preheader_), patterns::m_Zero());
        return counts ? phi : nullptr;
    }
    const llvm::Value* count() const { return last_compare()->getOperand(1); }
    // The question at the end of the loop, if it ends there where a number is reached.
    const llvm::ICmpInst* last_compare() const {
        const llvm::ICmpInst* const compare = loop_.getLatchCmpInst();
        return compare && compare->isEquality() && loop_.isLoopInvariant(compare->getOperand(1)) ? compare : nullptr;
    }

    llvm::Loop& loop_;
    llvm::BasicBlock& preheader_;
    MovedInvariants invariants_;
};

}  // namespace

void separate_questions(llvm::Loop& loop) {
    if (!loop.getLoopPreheader())
        return;
    llvm::SmallVector<Question> questions;
    for (llvm::BasicBlock* block : loop.blocks())
        for (llvm::Instruction& instruction : *block)
            if (auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction))
                if (const auto question = question_of(*compare))
                    questions.push_back(*question);
    Separation separation(loop);
    for (const Question& question : questions)
        separation.separate(question);
}

}  // namespace polder::compiler::workgroup
