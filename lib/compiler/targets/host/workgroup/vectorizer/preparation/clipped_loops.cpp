// The side that all work-items share is taken, as where a filter's taps are counted:
//
//     for (k = x + r >= width ? x + r + 1 - width : 0; k < (x - r < 0 ? x + r + 1 : taps); k++)
//
// That the other side is rarer is a guess. Where it is wrong, few work-items or none run in the loop without choices. Minima and maxima are no such choices: of
// `max(0, x - r)` the side that work-items share is the one at the edge.
#include "clipped_loops.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned depth_max = 8;  // of the operands of a limit

class Limits {
public:
    Limits(const llvm::Loop& loop, const GuardedLoop& guarded, const ItemRanges& ranges)
        : loop_(loop), guarded_(guarded), ranges_(ranges) {}

    // How far the limit of the next work-item is from this one's, away from the edges; nothing where that is not known.
    std::optional<int64_t> step_of(llvm::Value& value, unsigned depth = 0) {
        if (const auto step = guarded_.step_of(value))
            return step;
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (instruction == nullptr || !loop_.contains(instruction) || depth > depth_max)
            return std::nullopt;
        const auto of = [&](unsigned operand) { return step_of(*instruction->getOperand(operand), depth + 1); };
        const auto both = [&](int64_t sign) -> std::optional<int64_t> {
            const auto left = of(0), right = of(1);
            return left && right ? std::optional(*left + sign * *right) : std::nullopt;
        };
        switch (instruction->getOpcode()) {
        case llvm::Instruction::SExt:
        case llvm::Instruction::ZExt:
        case llvm::Instruction::Trunc:
        case llvm::Instruction::Freeze: return of(0);
        case llvm::Instruction::Add: return both(1);
        case llvm::Instruction::Sub: return both(-1);
        default: break;
        }
        const auto limit = limit_of(*instruction);
        if (!limit)
            return std::nullopt;
        if (llvm::none_of(found_, [&](const ClippedLimit& one) { return one.choice == instruction; }))
            found_.push_back(*limit);
        return step_of(*limit->taken, depth + 1);
    }

    [[nodiscard]] llvm::ArrayRef<ClippedLimit> found() const { return found_; }

private:
    [[nodiscard]] bool follows_work_item(llvm::Value& value) const {
        const auto step = guarded_.step_of(value);
        return !step || *step != 0;
    }

    [[nodiscard]] std::optional<ClippedLimit> limit_of(llvm::Instruction& choice) const {
        auto* const select = llvm::dyn_cast<llvm::SelectInst>(&choice);
        if (select == nullptr || !select->getType()->isIntegerTy())
            return std::nullopt;
        const bool is_first_shared = !follows_work_item(*select->getTrueValue());
        if (is_first_shared == !follows_work_item(*select->getFalseValue()))
            return std::nullopt;
        const auto holds = ranges_.comparison_of({select->getCondition(), is_first_shared});
        if (!holds)
            return std::nullopt;
        return ClippedLimit{&choice, is_first_shared ? select->getTrueValue() : select->getFalseValue(), *holds};
    }

    const llvm::Loop& loop_;
    const GuardedLoop& guarded_;
    const ItemRanges& ranges_;
    llvm::SmallVector<ClippedLimit, 4> found_;
};

// The numbers that the counter of `inner` begins and ends with; null where its last block does not compare a counter.
std::pair<llvm::Value*, llvm::Value*> ends_of(const llvm::Loop& inner) {
    const auto* const latch = inner.getLoopLatch();
    const llvm::ICmpInst* const compare = inner.getLatchCmpInst();
    llvm::BasicBlock* const before = inner.getLoopPredecessor();
    if (compare == nullptr || before == nullptr)
        return {};
    for (const unsigned bound : {0U, 1U}) {
        llvm::Value* const compared = compare->getOperand(1 - bound);
        if (!inner.isLoopInvariant(compare->getOperand(bound)))
            continue;
        for (llvm::PHINode& phi : inner.getHeader()->phis())
            if (&phi == compared || phi.getIncomingValueForBlock(latch) == compared)
                return {phi.getIncomingValueForBlock(before), compare->getOperand(bound)};
    }
    return {};
}

class Products {
public:
    Products(const llvm::Loop& loop, const AccessPlaces& places) : loop_(loop), places_(places) {}

    // The argument that is the factor of the only product in choices, and no other part of the limits; else null.
    llvm::Value* stride_of(llvm::ArrayRef<llvm::Value*> limits) {
        for (llvm::Value* limit : limits)
            visit(*limit, false);
        return found_ != nullptr && !is_other_part_ && !others_.contains(found_) ? found_ : nullptr;
    }

private:
    void visit(llvm::Value& value, bool is_chosen) {
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        others_.insert(root_of(&value));
        if (instruction == nullptr || llvm::isa<llvm::PHINode>(instruction) || !loop_.contains(instruction) ||
            seen_.size() == parts_max || !seen_.insert(instruction).second)
            return;
        if (llvm::Value* const factor = places_.factor_of(*instruction)) {
            llvm::Value* const root = root_of(factor);
            is_other_part_ |= found_ != nullptr;
            if (is_chosen && AccessPlaces::is_argument(*root))
                found_ = root;
            return;
        }
        is_chosen |= llvm::isa<llvm::SelectInst>(instruction);
        if (is_chosen || llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::FreezeInst>(instruction))
            for (const llvm::Use& operand : instruction->operands())
                visit(*operand.get(), is_chosen);
    }

    static constexpr size_t parts_max = 32;
    const llvm::Loop& loop_;
    const AccessPlaces& places_;
    llvm::Value* found_ = nullptr;
    bool is_other_part_ = false;  // whether there are several products
    llvm::SmallPtrSet<const llvm::Value*, 32> seen_;
    llvm::SmallPtrSet<const llvm::Value*, 32> others_;
};

}  // namespace

llvm::SmallVector<ClippedLimit, 4> clipped_limits(const llvm::Loop& loop, const GuardedLoop& guarded,
                                                  const ItemRanges& ranges) {
    llvm::SmallVector<ClippedLimit, 4> all;
    for (const llvm::Loop* const inner : loop.getLoopsInPreorder()) {
        const auto [begin, end] = inner == &loop ? std::pair<llvm::Value*, llvm::Value*>{} : ends_of(*inner);
        if (begin == nullptr)
            continue;
        Limits limits(loop, guarded, ranges);
        const auto step = limits.step_of(*begin);
        if (step != 0 || limits.step_of(*end) != 0)
            continue;
        for (const ClippedLimit& limit : limits.found())
            if (llvm::none_of(all, [&](const ClippedLimit& one) { return one.choice == limit.choice; }))
                all.push_back(limit);
    }
    return all;
}

KnownNumbers clipped_strides(const llvm::Loop& loop, const AccessPlaces& places) {
    for (const llvm::Loop* const inner : loop.getLoopsInPreorder()) {
        const auto [begin, end] = inner == &loop ? std::pair<llvm::Value*, llvm::Value*>{} : ends_of(*inner);
        if (begin == nullptr)
            continue;
        if (llvm::Value* const stride = Products(loop, places).stride_of({begin, end}))
            return {{.root = stride, .value = 1}};
    }
    return {};
}

}  // namespace polder::compiler::workgroup
