// For each innermost loop, the latency of its longest chain for one iteration is compared with the time that the iteration's instructions
// take when nothing waits. The ratio is how many vectors can run in the time of one. The chain is a cycle through the loop's phis: with D[i][j] the latency from phi i to the next value of
// phi j, it is the greatest mean of a cycle of D.
#include "interleaving.h"

#include "lane_cost.h"
#include "lane_types.h"

#include <algorithm>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IntrinsicInst.h>
#include <optional>
#include <vector>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned vectors_max = 4;
constexpr size_t chains_max = 8;
constexpr size_t body_instructions_max = 200;  // of the loop's body, which is emitted once more, for one vector
constexpr double never = -1;

class InnerLoop {
public:
    InnerLoop(const llvm::Loop& loop, const LaneShapes& shapes, LaneAccesses& accesses,
              const llvm::TargetTransformInfo& target, unsigned lanes)
        : loop_(loop), block_(*loop.getHeader()), shapes_(shapes), accesses_(accesses), target_(target), lanes_(lanes) {
    }

    unsigned vectors() {
        if (loop_.getNumBlocks() != 1 || !is_left_by_all_at_once())
            return 1;
        for (llvm::Instruction& instruction : block_)
            if (varies(instruction) && !count(instruction))
                return 1;
        if (phis_.size() > chains_max || work_ == 0)
            return 1;
        const unsigned registers = target_.getNumberOfRegisters(target_.getRegisterClassForType(true));
        unsigned vectors = 1;
        while (vectors < vectors_max && longest_chain() >= 2 * vectors * work_ &&
               2 * vectors * (phis_.size() + kept_.size() + temporaries) + shared_.size() <= registers)
            vectors *= 2;
        return vectors;
    }

private:
    static constexpr size_t temporaries = 2;

    [[nodiscard]] bool varies(const llvm::Value& value) const { return !shapes_.of(&value).is_strided(); }

    [[nodiscard]] bool is_left_by_all_at_once() const {
        const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block_.getTerminator());
        return branch && branch->isConditional() && shapes_.of(branch->getCondition()).is_uniform();
    }

    // Whether the call is an intrinsic that is one instruction, and the processor can start one of them in each cycle.
    static bool is_short(const llvm::Instruction& instruction) {
        const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        switch (call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic) {
        case llvm::Intrinsic::fmuladd:
        case llvm::Intrinsic::fma:
        case llvm::Intrinsic::fabs:
        case llvm::Intrinsic::minnum:
        case llvm::Intrinsic::maxnum:
        case llvm::Intrinsic::smin:
        case llvm::Intrinsic::smax:
        case llvm::Intrinsic::umin:
        case llvm::Intrinsic::umax:
        case llvm::Intrinsic::fshl:
        case llvm::Intrinsic::fshr: return true;
        default: return false;
        }
    }

    // Adds the instruction to the loop's work and values. False when interleaving would not make it faster.
    bool count(llvm::Instruction& instruction) {
        if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
            phis_.push_back(phi);
            return true;
        }
        if (instruction.isTerminator())
            return true;
        if (const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction)) {
            const auto access = accesses_.of(instruction);
            if (!shapes_.of(address).is_uniform() && !(access && access->is_certain && access->is_consecutive()))
                return false;
        } else if (instruction.isIntDivRem() || (llvm::isa<llvm::CallBase>(instruction) && !is_short(instruction))) {
            return false;
        }
        for (const llvm::Use& operand : instruction.operands())
            if (const auto* value = llvm::dyn_cast<llvm::Instruction>(operand.get()); value && !loop_.contains(value))
                (varies(*value) ? kept_ : shared_).insert(value);
        work_ += throughput(instruction);
        return true;
    }

    // In cycles, when two vector instructions start in each cycle.
    double throughput(const llvm::Instruction& instruction) const {
        if (!instruction.isBinaryOp())
            return 0.5;
        auto* type = of_lanes(*instruction.getType(), lanes_);
        const llvm::InstructionCost cost = target_.getArithmeticInstrCost(
            instruction.getOpcode(), type, llvm::TargetTransformInfo::TCK_RecipThroughput);
        const double cycles = cost.isValid() ? static_cast<double>(std::max<int64_t>(cost.getValue(), 1)) : 1;
        return cycles > 2 ? cycles : 0.5 * cycles;
    }

    double latency(const llvm::Instruction& instruction) const {
        constexpr double product_and_sum = 4;
        if (instruction.getType()->isFPOrFPVectorTy() && llvm::isa<llvm::IntrinsicInst>(instruction))
            return product_and_sum;
        const llvm::InstructionCost cost =
            target_.getInstructionCost(&instruction, llvm::TargetTransformInfo::TCK_Latency);
        return cost.isValid() ? static_cast<double>(cost.getValue()) : 1;
    }

    // The longest latencies from `phi` to the next value of each phi; `never` where there is no path.
    std::vector<double> latencies_from(const llvm::PHINode& phi) const {
        llvm::DenseMap<const llvm::Value*, double> reached{{&phi, 0}};
        for (const llvm::Instruction& instruction : block_) {
            if (llvm::isa<llvm::PHINode>(instruction))
                continue;
            double longest = never;
            for (const llvm::Use& operand : instruction.operands())
                if (const auto found = reached.find(operand.get()); found != reached.end())
                    longest = std::max(longest, found->second);
            if (longest != never)
                reached[&instruction] = longest + latency(instruction);
        }
        std::vector<double> result;
        for (const llvm::PHINode* other : phis_) {
            const auto found = reached.find(other->getIncomingValueForBlock(&block_));
            result.push_back(found == reached.end() ? never : found->second);
        }
        return result;
    }

    double longest_chain() {
        if (chain_)
            return *chain_;
        const size_t count = phis_.size();
        std::vector<std::vector<double>> step;
        for (const llvm::PHINode* phi : phis_)
            step.push_back(latencies_from(*phi));
        chain_ = 0;
        std::vector<std::vector<double>> paths = step;  // of `length` iterations
        for (size_t length = 1; length <= count; ++length) {
            for (size_t i = 0; i < count; ++i)
                chain_ = std::max(*chain_, paths[i][i] / static_cast<double>(length));
            std::vector<std::vector<double>> longer(count, std::vector<double>(count, never));
            for (size_t i = 0; i < count; ++i)
                for (size_t via = 0; via < count; ++via)
                    for (size_t j = 0; j < count; ++j)
                        if (paths[i][via] != never && step[via][j] != never)
                            longer[i][j] = std::max(longer[i][j], paths[i][via] + step[via][j]);
            paths = std::move(longer);
        }
        return *chain_;
    }

    const llvm::Loop& loop_;
    llvm::BasicBlock& block_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    const llvm::TargetTransformInfo& target_;
    const unsigned lanes_;
    llvm::SmallVector<llvm::PHINode*> phis_;  // that vary between lanes
    llvm::SmallPtrSet<const llvm::Value*, 16> kept_,
        shared_;  // made before the loop: one for each vector, one for all vectors
    double work_ = 0;
    std::optional<double> chain_;
};

// How many vectors fill a register, where all values that vary have 8 or 16 bits and all accesses are consecutive; else 1. Code for more lanes is
// not longer then.
unsigned vectors_in_a_register(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses) {
    constexpr unsigned lane_bits = 32;
    unsigned widest = 8;
    for (llvm::BasicBlock* block : plan.blocks)
        for (llvm::Instruction& instruction : *block) {
            if (instruction.getType()->isVectorTy())
                return 1;  // explicit vectors have as many lanes as fill a register (lane_types.h)
            if (llvm::getLoadStorePointerOperand(&instruction) != nullptr) {
                const auto access = accesses.of(instruction);
                if (!access || !access->is_certain || !access->is_consecutive())
                    return 1;
                widest = std::max(widest, llvm::getLoadStoreType(&instruction)->getScalarSizeInBits());
            } else if (instruction.mayReadOrWriteMemory() || instruction.getType()->isPointerTy()) {
                if (!shapes.of(&instruction).is_strided())
                    return 1;
            } else if (!instruction.getType()->isVoidTy() && !shapes.of(&instruction).is_strided()) {
                widest = std::max(widest, instruction.getType()->getScalarSizeInBits());
            }
        }
    return widest < lane_bits ? lane_bits / static_cast<unsigned>(llvm::PowerOf2Ceil(widest)) : 1;
}

}  // namespace

unsigned vectors_at_once(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                         const llvm::TargetTransformInfo& target, unsigned lanes) {
    size_t size = 0;
    for (const llvm::BasicBlock* block : plan.blocks)
        size += block->size();
    if (size > body_instructions_max || !plan.privates.empty())
        return 1;
    unsigned vectors = plan.loop->isInnermost() ? vectors_in_a_register(plan, shapes, accesses) : vectors_max;
    for (const llvm::Loop* loop : plan.loop->getLoopsInPreorder()) {
        if (loop == plan.loop || !loop->isInnermost())
            continue;
        vectors = std::min(vectors, InnerLoop(*loop, shapes, accesses, target, lanes).vectors());
    }
    if (const auto* count = llvm::dyn_cast<llvm::ConstantInt>(plan.count))
        while (vectors > 1 && count->getZExtValue() % (uint64_t{lanes} * vectors) != 0)
            vectors /= 2;
    return vectors;
}

}  // namespace polder::compiler::workgroup
