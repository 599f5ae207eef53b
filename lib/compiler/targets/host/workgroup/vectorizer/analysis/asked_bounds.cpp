// Follows what is computed from the number until each use is a comparison with a bound, or is behind one: a chain of blocks with one predecessor leads to
// the branch.
#include "asked_bounds.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

class AskedBounds {
public:
    AskedBounds(const llvm::Instruction& extension, const llvm::Loop& loop, llvm::SmallVectorImpl<llvm::Value*>& bounds)
        : extension_(extension), loop_(loop), bounds_(bounds) {}

    bool find() {
        constexpr size_t values_max = 64;
        llvm::SmallPtrSet<const llvm::Instruction*, 16> seen{&extension_};
        llvm::SmallVector<const llvm::Instruction*> todo{&extension_};
        while (!todo.empty()) {
            for (const llvm::Use& use : todo.pop_back_val()->uses()) {
                const auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
                if (is_question(*user) || is_guarded(use))
                    continue;
                if (!only_computes(*user))
                    return false;
                if (seen.insert(user).second)
                    todo.push_back(user);
            }
            if (seen.size() > values_max)
                return false;
        }
        return true;
    }

private:
    static bool only_computes(const llvm::Instruction& user) {
        switch (user.getOpcode()) {
        case llvm::Instruction::Add:
        case llvm::Instruction::Sub:
        case llvm::Instruction::Mul:
        case llvm::Instruction::Shl:
        case llvm::Instruction::GetElementPtr: return true;
        default: return false;
        }
    }

    // What the extension, or the number that is extended, is compared with: a bound, if the comparison is true, or false, only below it. `is_below`: which
    // of both.
    llvm::Value* bound_of(const llvm::Value& condition, bool& is_below) const {
        using namespace llvm::PatternMatch;
        llvm::CmpPredicate predicate;
        llvm::Value *left = nullptr, *right = nullptr;
        if (!match(&condition, m_ICmp(predicate, m_Value(left), m_Value(right))))
            return nullptr;
        if (!is_number(left)) {
            std::swap(left, right);
            predicate = llvm::CmpInst::getSwappedPredicate(predicate);
        }
        if (!is_number(left) || !loop_.isLoopInvariant(right))
            return nullptr;
        switch (llvm::CmpInst::Predicate{predicate}) {
        case llvm::CmpInst::ICMP_ULT:
        case llvm::CmpInst::ICMP_ULE: is_below = true; return right;
        case llvm::CmpInst::ICMP_UGT:
        case llvm::CmpInst::ICMP_UGE: is_below = false; return right;
        default: return nullptr;
        }
    }

    bool is_number(const llvm::Value* value) const {
        return value == &extension_ || (llvm::isa<llvm::ZExtInst>(extension_) && value == extension_.getOperand(0));
    }

    void add(llvm::Value& bound) {
        if (!llvm::is_contained(bounds_, &bound))
            bounds_.push_back(&bound);
    }

    // A comparison with a bound has the same result for a negative number and for one that has wrapped around.
    bool is_question(const llvm::Instruction& user) {
        bool is_below = false;
        llvm::Value* const bound = bound_of(user, is_below);
        if (bound == nullptr)
            return false;
        add(*bound);
        return true;
    }

    // Whether the number is below a bound where the condition has this result.
    bool follows(const llvm::Value& condition, bool result, unsigned depth = 0) {
        using namespace llvm::PatternMatch;
        constexpr unsigned conditions_depth_max = 6;
        const llvm::Value *left = nullptr, *right = nullptr;
        if (depth > conditions_depth_max)
            return false;
        bool is_below = false;
        if (llvm::Value* const bound = bound_of(condition, is_below)) {
            if (is_below == result)
                add(*bound);
            return is_below == result;
        }
        if (match(&condition, m_Not(m_Value(left))))
            return follows(*left, !result, depth + 1);
        const bool are_both = result ? match(&condition, m_LogicalAnd(m_Value(left), m_Value(right)))
                                     : match(&condition, m_LogicalOr(m_Value(left), m_Value(right)));
        return are_both && (follows(*left, result, depth + 1) || follows(*right, result, depth + 1));
    }

    bool is_guarded(const llvm::Use& use) {
        constexpr unsigned blocks_max = 32;
        const auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
        const llvm::BasicBlock* to = user->getParent();
        const llvm::BasicBlock* from = llvm::isa<llvm::PHINode>(user)
                                           ? llvm::cast<llvm::PHINode>(user)->getIncomingBlock(use)
                                           : to->getSinglePredecessor();
        for (unsigned number = 0; from != nullptr && loop_.contains(from) && number < blocks_max; ++number) {
            const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
            if (branch && branch->isConditional() && branch->getSuccessor(0) != branch->getSuccessor(1) &&
                follows(*branch->getCondition(), branch->getSuccessor(0) == to))
                return true;
            to = from;
            from = from->getSinglePredecessor();
        }
        return false;
    }

    const llvm::Instruction& extension_;
    const llvm::Loop& loop_;
    llvm::SmallVectorImpl<llvm::Value*>& bounds_;
};

}  // namespace

bool find_asked_bounds(const llvm::Instruction& extension, const llvm::Loop& loop,
                       llvm::SmallVectorImpl<llvm::Value*>& bounds) {
    return AskedBounds(extension, loop, bounds).find();
}

}  // namespace polder::compiler::workgroup
