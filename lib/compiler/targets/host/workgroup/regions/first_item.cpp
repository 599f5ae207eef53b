// A guard is an edge of a branch whose condition compares local ids with 0. An effect is the first work-item's alone when guards for all
// dimensions dominate its block.
#include "first_item.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

namespace patterns = llvm::PatternMatch;

using Dimensions = std::bitset<3>;

// The dimensions whose local ids are 0 when `value`, a number, is 0.
Dimensions zero_where_zero(const llvm::Value* value) {
    const llvm::Value *left = nullptr, *right = nullptr;
    if (patterns::match(value, patterns::m_Or(patterns::m_Value(left), patterns::m_Value(right))))
        return zero_where_zero(left) | zero_where_zero(right);
    constexpr unsigned id_bits = 31;  // a truncated id is the same number
    if (patterns::match(value, patterns::m_Trunc(patterns::m_Value(left))) &&
        value->getType()->getScalarSizeInBits() >= id_bits)
        value = left;
    const auto* id = llvm::dyn_cast<llvm::Instruction>(value);
    const std::optional<unsigned> dimension = id ? local_id_dimension(*id) : std::nullopt;
    if (dimension == place_dimension)
        return Dimensions{}.set();
    return dimension && *dimension < Dimensions{}.size() ? Dimensions{}.set(*dimension) : Dimensions{};
}

// The dimensions whose local ids are 0 when `condition` is `truth`.
Dimensions zero_where(const llvm::Value* condition, bool truth) {
    const llvm::Value *left = nullptr, *right = nullptr;
    if (truth ? patterns::match(condition, patterns::m_LogicalAnd(patterns::m_Value(left), patterns::m_Value(right)))
              : patterns::match(condition, patterns::m_LogicalOr(patterns::m_Value(left), patterns::m_Value(right))))
        return zero_where(left, truth) | zero_where(right, truth);
    const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(condition);
    const auto equality = truth ? llvm::CmpInst::ICMP_EQ : llvm::CmpInst::ICMP_NE;
    if (!compare || compare->getPredicate() != equality || !patterns::match(compare->getOperand(1), patterns::m_Zero()))
        return {};
    return zero_where_zero(compare->getOperand(0));
}

}  // namespace

FirstItem::FirstItem(const LoweredKernel& kernel) {
    for (unsigned d = 0; d < single_.size(); ++d) {
        const auto* size = llvm::dyn_cast<llvm::ConstantInt>(kernel.actual_size[d]);
        single_[d] = size && size->isOne();
    }
    for (const llvm::BasicBlock& block : *kernel.function) {
        const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
        if (!branch || !branch->isConditional())
            continue;
        for (const unsigned i : {0U, 1U})
            if (const Dimensions found = zero_where(branch->getCondition(), i == 0); found.any())
                guards_.push_back({{&block, branch->getSuccessor(i)}, found});
    }
    if (!guards_.empty())
        dominators_.recalculate(*kernel.function);
}

bool FirstItem::is_alone_in(const llvm::BasicBlock& block) const {
    Dimensions guarded = single_;
    for (const Guard& guard : guards_)
        if (dominators_.dominates(guard.edge, &block))
            guarded |= guard.dimensions;
    return guarded.all();
}

bool FirstItem::is_alone(const Region& region, const Uniformity& uniformity, CarriedValues& carried) const {
    // Otherwise each work-item writes which cut it reached, and that it has not returned.
    if (carried.alive() != nullptr || region.exits.size() + (region.returns ? 1 : 0) != 1)
        return false;
    for (const llvm::BasicBlock* cut : region.exits)
        for (llvm::Instruction* value : carried.live_in(*cut))
            if (region.blocks.contains(value->getParent()) && !uniformity.is_uniform(value) &&
                !carried.is_recomputable(value))
                return false;
    const auto has_effects = [](const llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](const llvm::Instruction& each) {
            return each.mayHaveSideEffects() && !each.isLifetimeStartOrEnd();
        });
    };
    // LLVM removes loops without effects by itself, and their absence changes what it does with other loops.
    return llvm::any_of(region.blocks, has_effects) && llvm::all_of(region.blocks, [&](const llvm::BasicBlock* block) {
               return !has_effects(block) || is_alone_in(*block);
           });
}

}  // namespace polder::compiler::workgroup
