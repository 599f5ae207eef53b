// `FollowingLimits` follows the operands of a loop's limits down to the work-item's number, and notes the choices on the way. What is required:
// - of a choice: that its comparison is for the side that follows;
// - of a number that is extended, or compared in an order: that it does not wrap around from one work-item to the next. Whether numbers are equal is the
//   same for all work-items even if they wrap around;
// - of the end of a loop: that it is so far from the largest number that the counter stops behind it.
// If the first work-item enters the loop, the counter never wraps around then: it is beyond the end by at most one increment.
#include "following_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned following_depth_max = 8;  // of the operands of a limit

using Predicate = llvm::CmpInst::Predicate;

// A number that is extended, or not.
struct ExtendedNumber {
    llvm::Value* number = nullptr;
    enum class By : uint8_t { nothing, sign, zeros } by = By::nothing;
};

ExtendedNumber extended_number(llvm::Value& value) {
    if (auto* const cast = llvm::dyn_cast<llvm::SExtInst>(&value))
        return {cast->getOperand(0), ExtendedNumber::By::sign};
    if (auto* const cast = llvm::dyn_cast<llvm::ZExtInst>(&value))
        return {cast->getOperand(0), cast->hasNonNeg() ? ExtendedNumber::By::sign : ExtendedNumber::By::zeros};
    return {&value, ExtendedNumber::By::nothing};
}

// The latch's comparison of a loop, with the counter on the left: the next iteration follows where it holds.
struct LatchEnd {
    Predicate predicate;
    llvm::ICmpInst* compare = nullptr;
    llvm::Value* bound = nullptr;
    llvm::PHINode* counter = nullptr;
    llvm::BinaryOperator* next = nullptr;
    int64_t increment = 0;
    bool is_truncated = false;
};

std::optional<LatchEnd> latch_end_of(const llvm::Loop& inner) {
    llvm::BasicBlock* const latch = inner.getLoopLatch();
    llvm::ICmpInst* const compare = inner.getLatchCmpInst();
    if (compare == nullptr || inner.getLoopPredecessor() == nullptr ||
        !compare->getOperand(0)->getType()->isIntegerTy())
        return std::nullopt;
    LatchEnd end{compare->getPredicate(), compare};
    const unsigned bound = inner.isLoopInvariant(compare->getOperand(1)) ? 1 : 0;
    if (!inner.isLoopInvariant(compare->getOperand(bound)))
        return std::nullopt;
    end.bound = compare->getOperand(bound);
    if (bound == 0)
        end.predicate = llvm::CmpInst::getSwappedPredicate(end.predicate);
    if (latch->getTerminator()->getSuccessor(0) != inner.getHeader())
        end.predicate = llvm::CmpInst::getInversePredicate(end.predicate);
    llvm::Value* counted = compare->getOperand(1 - bound);
    if (auto* const cast = llvm::dyn_cast<llvm::TruncInst>(counted)) {
        counted = cast->getOperand(0);
        end.is_truncated = true;
    }
    for (llvm::PHINode& phi : inner.getHeader()->phis()) {
        auto* const next = llvm::dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(latch));
        if (next == nullptr || (&phi != counted && next != counted))
            continue;
        const auto* const increment = llvm::dyn_cast<llvm::ConstantInt>(next->getOperand(1));
        if (next->getOpcode() != llvm::Instruction::Add || next->getOperand(0) != &phi || increment == nullptr ||
            increment->isZero() || increment->getValue().getSignificantBits() > 16)
            return std::nullopt;
        end.counter = &phi;
        end.next = next;
        end.increment = increment->getSExtValue();
        return end;
    }
    return std::nullopt;
}

class FollowingLimits {
public:
    FollowingLimits(const llvm::Loop& loop, const GuardedLoop& guarded, llvm::Value* count)
        : loop_(loop), guarded_(guarded), ranges_(guarded_, count) {}
    FollowingLimits(const FollowingLimits&) = delete;

    // Whether the loop's limits follow the work-item by the same step.
    bool add(const llvm::Loop& inner) {
        const auto end = latch_end_of(inner);
        if (!end)
            return false;
        llvm::Value* const begin = end->counter->getIncomingValueForBlock(inner.getLoopPredecessor());
        const ExtendedNumber first = extended_number(*begin), bound = extended_number(*end->bound);
        if (follow(*first.number) != 1 || follow(*bound.number) != 1 || !require_no_wrap(first) ||
            !require_no_wrap(bound))
            return false;
        if (llvm::CmpInst::isRelational(end->predicate) && !require_end(*end, first, bound))
            return false;
        // The first number must not wrap around either, so that the counter is as exact as it was.
        if (!require_no_wrap(first, ExtendedNumber::By::sign))
            return false;
        const bool is_in_order = llvm::CmpInst::isSigned(end->predicate) && llvm::CmpInst::isRelational(end->predicate);
        const bool counts_on = end->increment > 0 && end->next->hasNoSignedWrap();
        found_.counters.push_back({end->counter, end->next, !is_in_order && !counts_on});
        found_.shared.push_back(end->compare);
        return true;
    }

    // Comparisons and differences of the limits, and of `counters`, elsewhere in the loop over work-items.
    void add_shared(llvm::ArrayRef<FollowingLoops::Counter> counters) {
        counters_ = counters;
        for (llvm::BasicBlock* const block : loop_.blocks())
            for (llvm::Instruction& instruction : *block) {
                if (auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction)) {
                    if (is_shared(*compare))
                        found_.shared.push_back(compare);
                } else if (is_difference(instruction)) {
                    found_.shared.push_back(&instruction);
                }
            }
    }

    FollowingLoops& found() { return found_; }

private:
    // The step of a number from one work-item to the next, away from the edges.
    std::optional<int64_t> follow(llvm::Value& value, unsigned depth = 0) {
        if (const auto step = guarded_.step_of(value))
            return step;
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (instruction == nullptr || !loop_.contains(instruction) || depth > following_depth_max)
            return std::nullopt;
        if (llvm::isa<llvm::BinaryOperator, llvm::TruncInst>(instruction)) {
            for (const llvm::Use& operand : instruction->operands())
                if (!follow(*operand.get(), depth + 1))
                    return std::nullopt;
        } else {
            auto* const choice = llvm::dyn_cast<llvm::MinMaxIntrinsic>(instruction);
            if (choice == nullptr || !choose(*choice, depth))
                return std::nullopt;
        }
        return guarded_.step_of(value);
    }

    // Takes the side of a minimum or a maximum that follows the work-item, where the other one does not.
    bool choose(llvm::MinMaxIntrinsic& choice, unsigned depth) {
        llvm::Value *left = choice.getLHS(), *right = choice.getRHS();
        if (!choice.getType()->isIntegerTy() || guarded_.is_invariant(*left) == guarded_.is_invariant(*right))
            return false;
        if (guarded_.is_invariant(*left))
            std::swap(left, right);
        if (follow(*left, depth + 1) != 1)
            return false;
        const Predicate chosen = llvm::CmpInst::getNonStrictPredicate(choice.getPredicate());
        const auto holds = ranges_.comparison_of(chosen, left, right);
        if (!holds)
            return false;
        guarded_.take(choice, *left);
        found_.limits.push_back({&choice, left, *holds});
        return true;
    }

    bool require(Predicate predicate, llvm::Value& number, const llvm::APInt& bound) {
        const auto comparison =
            ranges_.comparison_of(predicate, &number, llvm::ConstantInt::get(number.getType(), bound));
        if (comparison)
            found_.required.push_back(*comparison);
        return comparison.has_value();
    }

    // That the number of the next work-item is larger, until the last one of those that are taken, in the order of numbers with a sign. In that of numbers
    // without, it is required to be positive in both: it may follow from negative numbers. False where a number with a sign is compared as one without.
    bool require_no_wrap(const ExtendedNumber& number) {
        return number.by == ExtendedNumber::By::nothing || require_order(*number.number, number.by);
    }
    bool require_no_wrap(const ExtendedNumber& number, ExtendedNumber::By order) {
        if (number.by == ExtendedNumber::By::nothing)
            return require_order(*number.number, order);
        return (number.by == order || order == ExtendedNumber::By::sign) && require_order(*number.number, number.by);
    }
    bool require_order(llvm::Value& number, ExtendedNumber::By order) {
        const unsigned bits = number.getType()->getIntegerBitWidth();
        return require(llvm::CmpInst::ICMP_SGE, number,
                       order == ExtendedNumber::By::sign ? llvm::APInt::getSignedMinValue(bits)
                                                         : llvm::APInt::getZero(bits));
    }

    // That the counter stops behind the end before it wraps around.
    bool require_end(const LatchEnd& end, const ExtendedNumber& first, const ExtendedNumber& bound) {
        const bool is_signed = llvm::CmpInst::isSigned(end.predicate), counts_up = end.increment > 0;
        const auto order = is_signed ? ExtendedNumber::By::sign : ExtendedNumber::By::zeros;
        const Predicate strict = llvm::CmpInst::getStrictPredicate(end.predicate);
        const bool is_below = strict == llvm::CmpInst::ICMP_SLT || strict == llvm::CmpInst::ICMP_ULT;
        if (is_below != counts_up || end.is_truncated || !require_no_wrap(first, order) ||
            !require_no_wrap(bound, order))
            return false;
        const unsigned bits = bound.number->getType()->getIntegerBitWidth();
        const llvm::APInt distance(bits, static_cast<uint64_t>(std::abs(end.increment)));
        const auto require_bound = [&](Predicate predicate, const llvm::APInt& most) {
            return require(predicate, *bound.number, most);
        };
        if (!is_signed) {  // all numbers are positive in both orders
            if (!counts_up && !require_bound(llvm::CmpInst::ICMP_SGE, distance))
                return false;
        } else if (bound.by == ExtendedNumber::By::nothing) {
            if (counts_up ? !require_bound(llvm::CmpInst::ICMP_SLE, llvm::APInt::getSignedMaxValue(bits) - distance)
                          : !require_bound(llvm::CmpInst::ICMP_SGE, llvm::APInt::getSignedMinValue(bits) + distance))
                return false;
        }
        found_.entries.push_back({llvm::CmpInst::getNonStrictPredicate(end.predicate), first_of(end), end.bound});
        return true;
    }
    static llvm::Value* first_of(const LatchEnd& end) {
        return end.counter->getIncomingValue(end.counter->getIncomingValue(0) == end.next ? 1 : 0);
    }

    // The step of a number that may contain counters. Adds the extended numbers that it contains.
    std::optional<int64_t> step_of(llvm::Value& value, llvm::SmallVectorImpl<ExtendedNumber>& numbers,
                                   unsigned depth = 0) const {
        if (const auto step = guarded_.step_of(value))
            return step;
        if (llvm::any_of(counters_, [&](const FollowingLoops::Counter& counter) { return counter.phi == &value; }))
            return 1;
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (instruction == nullptr || !loop_.contains(instruction) || depth > following_depth_max)
            return std::nullopt;
        if (const ExtendedNumber number = extended_number(value); number.by != ExtendedNumber::By::nothing) {
            const auto step = guarded_.step_of(*number.number);
            numbers.push_back(number);
            return step == 1 ? step : std::nullopt;
        }
        const auto of = [&](unsigned operand) {
            return step_of(*instruction->getOperand(operand), numbers, depth + 1);
        };
        const auto both = [&](int64_t sign) -> std::optional<int64_t> {
            const auto left = of(0), right = of(1);
            return left && right && std::abs(*left) <= 1 && std::abs(*right) <= 1 ? std::optional(*left + sign * *right)
                                                                                  : std::nullopt;
        };
        switch (instruction->getOpcode()) {
        case llvm::Instruction::Trunc: return of(0);
        case llvm::Instruction::Add: return both(1);
        case llvm::Instruction::Sub: return both(-1);
        default: return std::nullopt;
        }
    }

    bool require_no_wraps(llvm::ArrayRef<ExtendedNumber> numbers) {
        return llvm::all_of(numbers, [&](const ExtendedNumber& number) { return require_no_wrap(number); });
    }

    // Whether the instruction subtracts what follows the work-item from what does, too.
    bool is_difference(llvm::Instruction& instruction) {
        if (!instruction.getType()->isIntegerTy() || !llvm::isa<llvm::BinaryOperator>(instruction) ||
            guarded_.is_invariant(instruction))
            return false;
        llvm::SmallVector<ExtendedNumber, 4> numbers;
        return step_of(instruction, numbers) == 0 && require_no_wraps(numbers);
    }

    // Whether the comparison has one result for all work-items.
    bool is_shared(const llvm::ICmpInst& compare) {
        if (!compare.getOperand(0)->getType()->isIntegerTy())
            return false;
        if (compare.isEquality()) {
            llvm::SmallVector<ExtendedNumber, 4> numbers;
            return step_of(*compare.getOperand(0), numbers) == 1 && step_of(*compare.getOperand(1), numbers) == 1 &&
                   require_no_wraps(numbers);
        }
        const ExtendedNumber left = extended_number(*compare.getOperand(0));
        const ExtendedNumber right = extended_number(*compare.getOperand(1));
        if (guarded_.step_of(*left.number) != 1 || guarded_.step_of(*right.number) != 1)
            return false;
        const auto order = compare.isSigned() ? ExtendedNumber::By::sign : ExtendedNumber::By::zeros;
        return require_no_wrap(left, order) && require_no_wrap(right, order);
    }

    const llvm::Loop& loop_;
    GuardedLoop guarded_;
    ItemRanges ranges_;
    llvm::ArrayRef<FollowingLoops::Counter> counters_;
    FollowingLoops found_;
};

// The instructions of the first work-item, beside those of all.
class FirstItem {
public:
    FirstItem(llvm::Value& first, llvm::Value& item) { own_[&item] = &first; }

    void set(const llvm::Value& value, llvm::Value& of_first) { own_[&value] = &of_first; }

    llvm::Value* of(llvm::Value& value) {
        if (const auto found = own_.find(&value); found != own_.end())
            return found->second;
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (instruction == nullptr || llvm::isa<llvm::PHINode>(instruction) || instruction->mayReadOrWriteMemory())
            return &value;
        llvm::SmallVector<llvm::Value*, 4> operands;
        bool is_other = false;
        for (const llvm::Use& operand : instruction->operands()) {
            operands.push_back(of(*operand.get()));
            is_other |= operands.back() != operand.get();
        }
        llvm::Value* result = &value;
        if (is_other) {
            llvm::Instruction* const copy = instruction->clone();
            copy->dropPoisonGeneratingAnnotations();
            for (const auto [number, operand] : llvm::enumerate(operands))
                copy->setOperand(static_cast<unsigned>(number), operand);
            copy->insertBefore(instruction->getIterator());
            result = copy;
        }
        own_[&value] = result;
        return result;
    }

private:
    llvm::DenseMap<const llvm::Value*, llvm::Value*> own_;
};

}  // namespace

FollowingLoops following_loops(const llvm::Loop& loop, GuardedLoop& guarded, llvm::Value* count) {
    FollowingLoops all;
    GuardedLoop known = guarded;
    for (const llvm::Loop* const inner : loop.getLoopsInPreorder()) {
        if (inner == &loop)
            continue;
        FollowingLimits limits(loop, known, count);
        if (!limits.add(*inner))
            continue;
        FollowingLoops& found = limits.found();
        for (const ClippedLimit& limit : found.limits)
            known.take(*limit.choice, *limit.taken);
        llvm::append_range(all.limits, found.limits);
        llvm::append_range(all.required, found.required);
        llvm::append_range(all.entries, found.entries);
        llvm::append_range(all.counters, found.counters);
        llvm::append_range(all.shared, found.shared);
    }
    if (all.limits.empty())
        return {};
    for (const ClippedLimit& limit : all.limits)
        guarded.take(*limit.choice, *limit.taken);
    FollowingLimits elsewhere(loop, known, count);
    elsewhere.add_shared(all.counters);
    llvm::append_range(all.required, elsewhere.found().required);
    llvm::append_range(all.shared, elsewhere.found().shared);
    return all;
}

void share_following_loops(const FollowingLoops& following,
                           llvm::function_ref<llvm::Value*(const llvm::Value*)> copy_of, llvm::Value& first,
                           llvm::Value& item, llvm::Value& index) {
    FirstItem of_first(first, item);
    for (const FollowingLoops::Counter& counter : following.counters) {
        auto* const phi = llvm::cast<llvm::PHINode>(copy_of(counter.phi));
        auto* const next = llvm::cast<llvm::Instruction>(copy_of(counter.next));
        auto* const own = llvm::PHINode::Create(phi->getType(), 2, "", phi->getIterator());
        of_first.set(*phi, *own);
        llvm::Value* const own_next = of_first.of(*next);
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
            own->addIncoming(phi->getIncomingValue(i) == next ? own_next : of_first.of(*phi->getIncomingValue(i)),
                             phi->getIncomingBlock(i));
    }
    for (llvm::Instruction* const instruction : following.shared) {
        auto* const copy = llvm::cast<llvm::Instruction>(copy_of(instruction));
        if (llvm::Value* const result = of_first.of(*copy); result != copy)
            copy->replaceAllUsesWith(result);
    }
    for (const FollowingLoops::Counter& counter : following.counters) {
        auto* const phi = llvm::cast<llvm::PHINode>(copy_of(counter.phi));
        llvm::IRBuilder<> at(llvm::cast<llvm::Instruction>(item).getNextNode());
        llvm::Value* const distance = at.CreateZExtOrTrunc(&index, phi->getType());
        at.SetInsertPoint(&*phi->getParent()->getFirstInsertionPt());
        llvm::Value* const sum =
            at.CreateAdd(of_first.of(*phi), distance, "", /*HasNUW=*/false, /*HasNSW=*/!counter.wraps_signed);
        phi->replaceAllUsesWith(sum);
        phi->eraseFromParent();
    }
}

}  // namespace polder::compiler::workgroup
