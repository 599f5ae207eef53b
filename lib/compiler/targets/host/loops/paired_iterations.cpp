// The loop has this form (class SearchLoop):
//
//     head:  the long block, without effects; goes to `latch` if no element of a vector is equal to what it is compared with, else to other blocks
//     latch: counts; goes to `head` or to `exit`
//
// Before it comes a loop that executes two iterations at once (class Pairing), and that goes to `head` as soon as an element of either is equal:
//
//     both:    head and latch of one iteration and head of the next one, instruction by instruction; to `first` or `unusual`
//     first:   to `again` if there is a next iteration, else to `exit`
//     again:   to `next` if the next iteration's places were loaded from, else to `both`, which begins with that iteration
//     next:    latch of the next iteration; to `both` or to `exit`
//     unusual: to `head`, which executes the one iteration again
//
// Both results are asked for in `both`, or LLVM would move the next iteration behind the branch.
//
// The new loop stores nothing. So what it loads does not change while it runs, and it may load in any order. Where there is no next iteration, its values are
// computed all the same, from the places that the one iteration loads from, and are not used.
//
// What else is done when an element is equal may end the loop, or change what it loads (class Foreknowledge). Then nothing is known to be readable at the places
// of the next iteration but pages of memory that the one iteration loads from. Only where all loads are known beforehand is there no `again`.
#include "paired_iterations.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>

namespace polder::compiler {
namespace {

// A processor finds the next iteration by itself if it is not further away than this.
constexpr size_t paired_block_min = 100;
constexpr size_t paired_block_max = 2000;  // The code grows by twice as much.
constexpr unsigned paired_registers_min = 32;
constexpr unsigned searched_bits_min = 32;  // Narrower numbers are equal by chance.
constexpr double paired_vectors_per_cycle = 2;
constexpr double paired_waiting_min = 1.3;
constexpr unsigned paired_carried_max = 8;
constexpr uint64_t paired_page_bytes = 4096;  // the least of all processors

// Division by zero ends a process, and the divisor of an iteration that does not take place may be 0.
bool may_be_early(const llvm::Instruction& instruction) {
    if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
        return load->isSimple();
    if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        return llvm::isa<llvm::IntrinsicInst>(call) && call->doesNotAccessMemory() && !call->isConvergent() &&
               call->willReturn();
    return !instruction.mayReadOrWriteMemory() && !instruction.isIntDivRem() &&
           !llvm::isa<llvm::AllocaInst>(instruction);
}

// Whether `question` has the value `usual` unless some element of a vector has the one value that a search looks for.
bool is_seldom_equal(const llvm::Value& question, bool usual) {
    using namespace llvm::PatternMatch;
    llvm::CmpPredicate asked, compared;
    llvm::Value *mask = nullptr, *one = nullptr, *other = nullptr;
    if (!match(&question, m_ICmp(asked, m_BitCast(m_Value(mask)), m_Zero())) ||
        asked != (usual ? llvm::CmpInst::ICMP_EQ : llvm::CmpInst::ICMP_NE))
        return false;
    if (const auto* const freeze = llvm::dyn_cast<llvm::FreezeInst>(mask))
        mask = freeze->getOperand(0);
    return match(mask, m_ICmp(compared, m_Value(one), m_Value(other))) && compared == llvm::CmpInst::ICMP_EQ &&
           one->getType()->isVectorTy() && one->getType()->getScalarSizeInBits() >= searched_bits_min;
}

struct SearchLoop {
    llvm::BasicBlock *before = nullptr, *head = nullptr, *latch = nullptr, *exit = nullptr;

    [[nodiscard]] static std::optional<SearchLoop> of(const llvm::Loop& loop) {
        const SearchLoop found{.before = loop.getLoopPredecessor(),
                               .head = loop.getHeader(),
                               .latch = loop.getLoopLatch(),
                               .exit = loop.getExitBlock()};
        // What the latch loads is loaded in each iteration only if there is no other way out.
        if (found.before == nullptr || found.exit == nullptr || found.latch == nullptr || found.latch == found.head ||
            loop.getExitingBlock() != found.latch || !loop.isInnermost() ||
            llvm::count(llvm::successors(found.before), found.head) != 1)
            return std::nullopt;
        return found.is_a_search() && found.may_be_early() && found.has_no_results(loop) ? std::optional(found)
                                                                                         : std::nullopt;
    }

    [[nodiscard]] const llvm::BranchInst& question() const {
        return *llvm::cast<llvm::BranchInst>(head->getTerminator());
    }
    [[nodiscard]] const llvm::BranchInst& end() const { return *llvm::cast<llvm::BranchInst>(latch->getTerminator()); }
    [[nodiscard]] llvm::Value* next_of(const llvm::PHINode& carried) const {
        return carried.getIncomingValueForBlock(latch);
    }
    [[nodiscard]] bool contains(const llvm::Value& value) const {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        return instruction != nullptr && (instruction->getParent() == head || instruction->getParent() == latch);
    }

private:
    [[nodiscard]] bool is_a_search() const {
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(head->getTerminator());
        const auto* const back = llvm::dyn_cast<llvm::BranchInst>(latch->getTerminator());
        return branch != nullptr && branch->isConditional() && back != nullptr && back->isConditional() &&
               llvm::count(branch->successors(), latch) == 1 &&
               is_seldom_equal(*branch->getCondition(), branch->getSuccessor(0) == latch);
    }

    [[nodiscard]] bool may_be_early() const {
        return llvm::all_of(*head, compiler::may_be_early) && llvm::all_of(*latch, compiler::may_be_early);
    }

    // No value of the two blocks is used after the loop.
    [[nodiscard]] bool has_no_results(const llvm::Loop& loop) const {
        const auto is_inside = [&loop](const llvm::User* user) {
            return loop.contains(llvm::cast<llvm::Instruction>(user));
        };
        const auto stays_inside = [&](const llvm::Instruction& each) { return llvm::all_of(each.users(), is_inside); };
        return llvm::all_of(*head, stays_inside) && llvm::all_of(*latch, stays_inside);
    }
};

// Whether a value of the next iteration is the same, whatever is done after the question of the one before. It is not where it depends on what the latch joins,
// or on memory, which may have been changed.
class Foreknowledge {
public:
    explicit Foreknowledge(const SearchLoop& loop) : loop_(loop) {}

    // Whether it is known that there is a next iteration, and where it loads from.
    [[nodiscard]] bool of_next_iteration() {
        return of(*loop_.end().getCondition(), false) && llvm::all_of(*loop_.head, [this](llvm::Instruction& each) {
                   const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&each);
                   return load == nullptr || of(*load->getPointerOperand(), true);
               });
    }

    // Whether the latch may load early: the place is that which it loads from in any case.
    [[nodiscard]] bool of_loads_at_end() {
        return llvm::all_of(*loop_.latch, [this](llvm::Instruction& each) {
            const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&each);
            return load == nullptr || of(*load->getPointerOperand(), false);
        });
    }

private:
    // Of the next iteration, if `is_next`, else of the one before; there, what the head has loaded is known.
    bool of(const llvm::Value& value, bool is_next) {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (instruction == nullptr || !loop_.contains(value) || !seen_[is_next].insert(instruction).second)
            return true;
        const bool is_of_head = instruction->getParent() == loop_.head;
        if (const auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction))
            return is_of_head && (!is_next || of(*loop_.next_of(*phi), false));
        if (llvm::isa<llvm::LoadInst>(instruction) && (is_next || !is_of_head))
            return false;
        return llvm::all_of(instruction->operands(), [&](const llvm::Use& input) { return of(*input, is_next); });
    }

    const SearchLoop& loop_;
    llvm::SmallPtrSet<const llvm::Value*, 32> seen_[2];  // an answer of false ends all questions
};

// How long an iteration takes if each operation takes one cycle.
class ChainEstimate {
public:
    ChainEstimate(const SearchLoop& loop, const llvm::TargetTransformInfo& target) : loop_(loop), target_(target) {
        for (const llvm::BasicBlock* const block : {loop.head, loop.latch})
            for (const llvm::Instruction& instruction : *block)
                add(instruction);
    }

    // Whether the processor's units wait for the chain of dependent operations.
    [[nodiscard]] bool is_waiting() const { return chain_ > paired_waiting_min * vectors_ / paired_vectors_per_cycle; }

    // Whether the next iteration can begin long before this one ends.
    [[nodiscard]] bool is_independent() const {
        return llvm::all_of(loop_.head->phis(), [this](const llvm::PHINode& carried) {
            return depths_.lookup(loop_.next_of(carried)) <= paired_carried_max;
        });
    }

private:
    void add(const llvm::Instruction& instruction) {
        unsigned depth = 0;
        if (!llvm::isa<llvm::PHINode>(instruction) || instruction.getParent() != loop_.head)
            for (const llvm::Value* const input : instruction.operands())
                depth = std::max(depth, depths_.lookup(input));
        auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
        if (llvm::isa<llvm::BinaryOperator, llvm::SelectInst, llvm::IntrinsicInst>(instruction)) {
            ++depth;
            vectors_ += type != nullptr ? target_.getNumberOfParts(type) : 0;
        }
        depths_[&instruction] = depth;
        chain_ = std::max(chain_, depth);
    }

    const SearchLoop& loop_;
    const llvm::TargetTransformInfo& target_;
    llvm::DenseMap<const llvm::Value*, unsigned> depths_;
    unsigned chain_ = 0, vectors_ = 0;
};

// The values of one iteration of the new loop, by those of the old one. Makes them when they are needed.
class MadeIteration {
public:
    MadeIteration(const SearchLoop& loop, llvm::IRBuilder<>& at) : loop_(loop), at_(at) {}

    void set(const llvm::Value& old, llvm::Value& made) { made_[&old] = &made; }

    llvm::Value* take(llvm::Value& old) {
        if (!loop_.contains(old))
            return &old;
        if (llvm::Value* const made = made_.lookup(&old))
            return made;
        auto& instruction = llvm::cast<llvm::Instruction>(old);
        if (auto* const joined = llvm::dyn_cast<llvm::PHINode>(&instruction))
            return made_[&old] = take(*joined->getIncomingValueForBlock(loop_.head));
        llvm::Instruction* const copy = instruction.clone();
        for (llvm::Use& input : copy->operands())
            input.set(take(*input));
        return made_[&old] = at_.Insert(copy, old.getName());
    }

    // Whether the loop goes on after this iteration, as a number of one bit.
    llvm::Value* goes_on() { return turned(loop_.end(), loop_.head); }
    llvm::Value* is_usual() { return turned(loop_.question(), loop_.latch); }

private:
    llvm::Value* turned(const llvm::BranchInst& branch, const llvm::BasicBlock* to) {
        llvm::Value* const asked = take(*branch.getCondition());
        return branch.getSuccessor(0) == to ? asked : at_.CreateNot(asked);
    }

    const SearchLoop& loop_;
    llvm::IRBuilder<>& at_;
    llvm::DenseMap<const llvm::Value*, llvm::Value*> made_;
};

class Pairing {
public:
    explicit Pairing(const SearchLoop& loop)
        : loop_(loop), at_(loop.head->getContext()), one_(loop_, at_), two_(loop_, at_) {}

    void make() {
        both_ = block("both"), first_ = block("first"), next_ = block("next"), unusual_ = block("unusual");
        if (!Foreknowledge(loop_).of_next_iteration())
            again_ = block("again");
        compute();
        if (again_ != nullptr)
            begin_again();
        at_.SetInsertPoint(next_);
        for (llvm::PHINode& old : loop_.head->phis())
            llvm::cast<llvm::PHINode>(one_.take(old))->addIncoming(two_.take(*loop_.next_of(old)), next_);
        at_.CreateCondBr(two_.goes_on(), both_, loop_.exit);
        connect();
    }

private:
    llvm::BasicBlock* block(const char* name) {
        return llvm::BasicBlock::Create(at_.getContext(), name, loop_.head->getParent(), loop_.head);
    }

    void compute() {
        at_.SetInsertPoint(both_);
        for (llvm::PHINode& old : loop_.head->phis()) {
            llvm::PHINode* const carried = at_.CreatePHI(old.getType(), 2, old.getName());
            carried->addIncoming(old.getIncomingValueForBlock(loop_.before), loop_.before);
            one_.set(old, *carried);
        }
        for (llvm::PHINode& old : loop_.head->phis())
            two_.set(old, *one_.take(*loop_.next_of(old)));
        llvm::Value* goes_on = one_.goes_on();
        if (again_ != nullptr) {
            goes_on = at_.CreateFreeze(goes_on);
            are_loaded_ = at_.getTrue();
        }
        for (llvm::Instruction& old : *loop_.head)
            if (!llvm::isa<llvm::PHINode>(old) && !old.isTerminator()) {
                one_.take(old);
                compute_early(old, *goes_on);
            }
        llvm::Value* two_is_usual = two_.is_usual();
        if (again_ != nullptr)
            two_is_usual = at_.CreateSelect(are_loaded_, two_is_usual, at_.getTrue());
        at_.CreateCondBr(at_.CreateAnd(one_.is_usual(), at_.CreateFreeze(two_is_usual)), first_, unusual_);
        at_.SetInsertPoint(first_);
        at_.CreateCondBr(goes_on, again_ != nullptr ? again_ : next_, loop_.exit);
    }

    void begin_again() {
        at_.SetInsertPoint(again_);
        at_.CreateCondBr(are_loaded_, next_, both_, llvm::MDBuilder(at_.getContext()).createLikelyBranchWeights());
        for (llvm::PHINode& old : loop_.head->phis())
            llvm::cast<llvm::PHINode>(one_.take(old))->addIncoming(one_.take(*loop_.next_of(old)), again_);
    }

    void compute_early(llvm::Instruction& old, llvm::Value& goes_on) {
        auto* const load = llvm::dyn_cast<llvm::LoadInst>(&old);
        if (load != nullptr) {
            llvm::Value* const here = one_.take(*load->getPointerOperand());
            llvm::Value* const there = two_.take(*load->getPointerOperand());
            llvm::Value* is_read = &goes_on;
            if (again_ != nullptr && here != there) {
                llvm::Value* const is_near = are_on_one_page(*load, *here, *there);
                is_read = at_.CreateAnd(is_read, is_near);
                are_loaded_ = at_.CreateAnd(are_loaded_, is_near);
            }
            two_.set(old, here == there ? *one_.take(old) : *load_from(*load, *at_.CreateSelect(is_read, there, here)));
        }
        two_.take(old);
    }

    // Whether the bytes at `there` are on the page where those at `here` begin.
    llvm::Value* are_on_one_page(const llvm::LoadInst& load, llvm::Value& here, llvm::Value& there) {
        const llvm::DataLayout& layout = load.getDataLayout();
        const uint64_t bytes = layout.getTypeStoreSize(load.getType()).getFixedValue();
        llvm::Type* const number = layout.getIntPtrType(here.getType());
        llvm::Value* const from = at_.CreatePtrToInt(&here, number);
        llvm::Value* const first = at_.CreatePtrToInt(&there, number);
        const auto is_on_page = [&](llvm::Value* place) {
            return at_.CreateICmpULT(at_.CreateXor(from, place), llvm::ConstantInt::get(number, paired_page_bytes));
        };
        llvm::Value* is_near = is_on_page(first);
        if (load.getAlign().value() < bytes)
            is_near =
                at_.CreateAnd(is_near, is_on_page(at_.CreateAdd(first, llvm::ConstantInt::get(number, bytes - 1))));
        return at_.CreateFreeze(is_near);
    }

    llvm::Value* load_from(const llvm::LoadInst& old, llvm::Value& place) {
        auto* const copy = llvm::cast<llvm::LoadInst>(at_.Insert(old.clone(), old.getName()));
        copy->setOperand(llvm::LoadInst::getPointerOperandIndex(), &place);
        return copy;
    }

    void connect() {
        loop_.before->getTerminator()->replaceSuccessorWith(loop_.head, both_);
        llvm::BranchInst::Create(loop_.head, unusual_);
        for (llvm::PHINode& old : loop_.head->phis()) {
            old.removeIncomingValue(loop_.before, /*DeletePHIIfEmpty=*/false);
            old.addIncoming(one_.take(old), unusual_);
        }
        for (llvm::PHINode& result : loop_.exit->phis())
            for (llvm::BasicBlock* const block : {first_, next_})
                result.addIncoming(result.getIncomingValueForBlock(loop_.latch), block);
    }

    const SearchLoop loop_;
    llvm::IRBuilder<> at_;
    MadeIteration one_, two_;
    llvm::BasicBlock *both_ = nullptr, *first_ = nullptr, *next_ = nullptr, *unusual_ = nullptr;
    llvm::BasicBlock* again_ = nullptr;  // only where the next iteration's loads are not known beforehand
    llvm::Value* are_loaded_ = nullptr;
};

bool has_registers(const llvm::TargetTransformInfo& target) {
    return target.getNumberOfRegisters(target.getRegisterClassForType(/*Vector=*/true)) >= paired_registers_min;
}

}  // namespace

unsigned pair_iterations(llvm::Function& function, const llvm::TargetTransformInfo& target) {
    const auto is_long = [](const llvm::BasicBlock& block) {
        return block.size() >= paired_block_min && block.size() <= paired_block_max;
    };
    if (llvm::none_of(function, is_long) || !has_registers(target))
        return 0;
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    llvm::SmallVector<SearchLoop> found;
    for (const llvm::Loop* const loop : loops.getLoopsInPreorder())
        if (is_long(*loop->getHeader()))
            if (const auto candidate = SearchLoop::of(*loop))
                if (const ChainEstimate estimate(*candidate, target);
                    estimate.is_waiting() && estimate.is_independent() && Foreknowledge(*candidate).of_loads_at_end())
                    found.push_back(*candidate);
    for (const SearchLoop& candidate : found)
        Pairing(candidate).make();
    return static_cast<unsigned>(found.size());
}

}  // namespace polder::compiler
