// The chain of an iteration is a cycle through the phis of the loop's header. With D[i][j] the latency from phi i to the next value of phi j, along any
// path through the loop's blocks, it is the greatest mean of a cycle of D.
//
// Values that do not fit the registers are work: a store and a load for each. Lanes that leave a loop at different times stay in it until
// the last of all vectors has left.
#include "waiting_loops.h"

#include "apart_costs.h"
#include "growth.h"
#include "lane_cost.h"
#include "lane_times.h"
#include "registers_alive.h"
#include "targets/host/workgroup/frame/accumulators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IntrinsicInst.h>
#include <optional>
#include <vector>

namespace polder::compiler::workgroup {

namespace {

constexpr double no_path = -1;
using Latencies = std::vector<std::vector<double>>;

// The greatest mean latency of a cycle, where `step` are the latencies of one iteration.
double longest_cycle(const Latencies& step) {
    const size_t count = step.size();
    double longest = 0;
    Latencies paths = step;  // of `length` iterations
    for (size_t length = 1; length <= count; ++length) {
        for (size_t i = 0; i < count; ++i)
            longest = std::max(longest, paths[i][i] / static_cast<double>(length));
        Latencies longer(count, std::vector<double>(count, no_path));
        for (size_t i = 0; i < count; ++i)
            for (size_t via = 0; via < count; ++via)
                for (size_t j = 0; j < count; ++j)
                    if (paths[i][via] != no_path && step[via][j] != no_path)
                        longer[i][j] = std::max(longer[i][j], paths[i][via] + step[via][j]);
        paths = std::move(longer);
    }
    return longest;
}

// An innermost loop of the kernel.
class WaitingLoop {
public:
    WaitingLoop(const llvm::Loop& loop, const LanePlan& plan, const LaneShapes& shapes, unsigned registers,
                const LaneTarget& prices)
        : loop_(loop), all_(*plan.loop), shapes_(shapes), registers_(registers),
          work_(has_leaving_lanes(plan) ? prices.masks == Masks::dear ? masks_dear : masks_cheap : 0),
          leaves_(work_ > 0) {
        for (llvm::BasicBlock* block : plan.blocks)
            if (plan.loops->getLoopFor(block) == &loop)
                blocks_.push_back(block);
    }

    // False where there is an instruction whose time is not known, or there are too many chains. Explicit vectors, which are several chains of one
    // work-item, are left to interleaving.cpp: products of matrices by rows of float4 took 1.1 times as long with two vectors (Zen 4).
    bool count(const LanePlan& plan, LaneTimes& times, LaneAccesses& accesses) {
        for (llvm::BasicBlock* block : blocks_) {
            alive_ =
                std::max(alive_, registers_alive(*block, [&](const llvm::Value& value) { return is_kept(value); }));
            for (llvm::Instruction& instruction : *block)
                if (!count(instruction, times, accesses))
                    return false;
            skips_ |= !leaves_ && plan.is_masked(block);
            asked_ += llvm::count_if(*block, [&](llvm::Instruction& access) { return is_asked(access, accesses); });
            walks_ |= llvm::any_of(*block, [&](llvm::Instruction& access) { return walks(access, accesses); });
            const llvm::Instruction& end = *block->getTerminator();
            branches_ += end.getNumSuccessors() > 1 && !loop_.isLoopExiting(block) && !plan.is_masked(block) &&
                         !plan.divergent.contains(block);
        }
        if (phis_.size() > chains_max || loop_.getLoopLatch() == nullptr)
            return false;
        Latencies step;
        for (const llvm::PHINode* phi : phis_)
            step.push_back(latencies_from(*phi));
        chain_ = longest_cycle(step);
        return true;
    }

    [[nodiscard]] bool leaves() const { return leaves_; }

    // Of one vector for one iteration, where there are `vectors`.
    [[nodiscard]] double time(unsigned vectors) const {
        constexpr double not_overlapped = 0.25, last_lane = 1.1, walk_time = 2;
        const double spilled = std::max(0.0, static_cast<double>(vectors * alive_) - registers_);
        const double interrupted = 0.5 * static_cast<double>(asked_ * vectors * (vectors - 1));
        const double work = vectors * work_ + spilled + interrupted + shared_ + static_cast<double>(branches_) +
                            (walks_ && !skips_ ? walk_time : 0);
        const double time = std::max(chain_, work) + not_overlapped * std::min(chain_, work);
        return time / vectors * (leaves_ ? std::pow(last_lane, std::log2(vectors)) : 1);
    }

private:
    static constexpr size_t chains_max = 16;
    static constexpr double masks_cheap = 1, masks_dear = 4;
    static constexpr double work_of_register = 0.5;  // of a value in a register, or beside it on the stack

    [[nodiscard]] bool varies(const llvm::Value& value) const { return !shapes_.of(&value).is_strided(); }

    [[nodiscard]] size_t is_kept(const llvm::Value& value) const {
        return llvm::isa<llvm::Instruction>(value) && !value.getType()->isVoidTy() && !value.getType()->isPointerTy() &&
                       !value.getType()->isIntegerTy(1) && varies(value)
                   ? 1
                   : 0;
    }

    // Whether each lane accesses a row of its own, many bytes from the next lane's: more lanes use more lines of the cache at once, and displace each other.
    [[nodiscard]] bool is_in_rows_of_lanes(llvm::Instruction& instruction, LaneAccesses& accesses) const {
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        return address != nullptr && shapes_.of(address).is_strided() && !shapes_.of(address).is_uniform() &&
               !accesses.of(instruction) && !is_loaded_before(instruction);
    }

    // Whether the load is of each lane from a short row of its own, and takes place before the loop: of one element, which the loop loads in each iteration; or
    // before the loop around it, which loads the same few elements in each of its iterations, as LLVM unrolls this loop.
    [[nodiscard]] bool is_loaded_before(const llvm::Instruction& instruction) const {
        constexpr int64_t row_bytes_max = 256;
        const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        if (load == nullptr || !load->isSimple())
            return false;
        const LaneShape address = shapes_.of(load->getPointerOperand());
        if (!address.is_strided() || address.is_uniform() || std::abs(address.stride) > row_bytes_max)
            return false;
        const llvm::Loop* around = &loop_;
        if (!is_same_in_each(*load->getPointerOperand(), loop_))
            around = has_few_iterations() ? loop_.getParentLoop() : nullptr;
        return around != nullptr && around != &all_ && is_same_in_each(*load->getPointerOperand(), *around) &&
               llvm::none_of(around->blocks(), [](const llvm::BasicBlock* block) {
                   return llvm::any_of(*block, [](const llvm::Instruction& any) { return any.mayWriteToMemory(); });
               });
    }

    // Whether the loop is one block and counts from a constant to another one.
    [[nodiscard]] bool has_few_iterations() const {
        constexpr uint64_t iterations_max = 32;
        const llvm::ICmpInst* const compare =
            loop_.getLoopLatch() == loop_.getHeader() ? loop_.getLatchCmpInst() : nullptr;
        const auto* const end = compare ? llvm::dyn_cast<llvm::ConstantInt>(compare->getOperand(1)) : nullptr;
        return end != nullptr && end->getValue().ule(iterations_max) &&
               growth_of(compare->getOperand(0), loop_).value_or(0) == 1;
    }

    // Whether the value is the same in each iteration of `around`; where that is the loop around this one, its row of values in this loop.
    [[nodiscard]] bool is_same_in_each(const llvm::Value& value, const llvm::Loop& around, unsigned depth = 0) const {
        constexpr unsigned depth_max = 8;
        if (around.isLoopInvariant(&value))
            return true;
        const auto& instruction = llvm::cast<llvm::Instruction>(value);
        if (depth > depth_max || !loop_.contains(&instruction) || instruction.mayReadOrWriteMemory())
            return false;
        if (const auto* const phi = llvm::dyn_cast<llvm::PHINode>(&instruction))
            return &around != &loop_ && growth_of(phi, loop_) &&
                   is_same_in_each(*phi->getIncomingValueForBlock(loop_.getLoopPredecessor()), around, depth + 1);
        return llvm::all_of(instruction.operands(),
                            [&](const llvm::Use& operand) { return is_same_in_each(*operand, around, depth + 1); });
    }

    // Whether each vector compares at run time whether its lanes are a row. Among more lanes there is more often one that is not in it.
    [[nodiscard]] bool is_asked(llvm::Instruction& instruction, LaneAccesses& accesses) const {
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        if (address == nullptr || shapes_.of(address).is_uniform())
            return false;
        const auto access = accesses.of(instruction);
        return access && !access->is_certain;
    }

    // Whether all lanes access a row that moves by a page or more in each iteration, or by a step that is not known: several vectors use each page and the
    // lines beside each other.
    [[nodiscard]] bool walks(llvm::Instruction& instruction, LaneAccesses& accesses) const {
        constexpr int64_t page_bytes = 4096;
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        if (address == nullptr || shapes_.of(address).is_uniform() || !is_in_buffer(instruction))
            return false;
        const auto access = accesses.of(instruction);
        if (!access || !access->is_certain || !access->is_consecutive() || loop_.isLoopInvariant(address))
            return false;
        const auto growth = growth_of(address, loop_);
        return !growth || std::abs(*growth) >= page_bytes;
    }

    [[nodiscard]] bool has_leaving_lanes(const LanePlan& plan) const {
        llvm::SmallVector<llvm::BasicBlock*> exiting;
        loop_.getExitingBlocks(exiting);
        return llvm::any_of(exiting, [&](const llvm::BasicBlock* block) { return plan.divergent.contains(block); });
    }

    // Of an instruction that all lanes share. The divider is busy, and what follows a division waits for it, while little else is left to do (measured on a Zen 4).
    static double shared_work(const llvm::Instruction& instruction) {
        constexpr double simple = 0.15, division = 8;
        const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (instruction.getOpcode() == llvm::Instruction::FDiv ||
            (call && call->getIntrinsicID() == llvm::Intrinsic::sqrt))
            return division;
        return llvm::isa<llvm::BinaryOperator, llvm::CmpInst, llvm::SelectInst>(instruction) ? simple : 0;
    }

    bool count(llvm::Instruction& instruction, LaneTimes& times, LaneAccesses& accesses) {
        if (instruction.isTerminator())
            return true;
        if (const auto* const phi = llvm::dyn_cast<llvm::PHINode>(&instruction);
            phi && phi->getParent() == loop_.getHeader()) {
            if (varies(*phi))
                phis_.push_back(phi);
            return true;
        }
        if (!instruction.getType()->isVoidTy() && !varies(instruction)) {
            shared_ += shared_work(instruction);
            return true;
        }
        std::optional<LaneTime> time = times.of(instruction);
        if (time && is_loaded_before(instruction))
            time->work = work_of_register;
        if (!time || instruction.getType()->isVectorTy() || is_in_rows_of_lanes(instruction, accesses))
            return false;
        work_ += time->work;
        latencies_[&instruction] = time->latency;
        return true;
    }

    // The longest latencies from `phi` to the next value of each phi.
    [[nodiscard]] std::vector<double> latencies_from(const llvm::PHINode& phi) const {
        llvm::DenseMap<const llvm::Value*, double> reached{{&phi, 0}};
        for (const llvm::BasicBlock* block : blocks_)
            for (const llvm::Instruction& instruction : *block) {
                const auto latency = latencies_.find(&instruction);
                if (latency == latencies_.end())
                    continue;
                double longest = no_path;
                for (const llvm::Use& operand : instruction.operands())
                    if (const auto found = reached.find(operand.get()); found != reached.end())
                        longest = std::max(longest, found->second);
                if (longest != no_path)
                    reached[&instruction] = longest + latency->second;
            }
        std::vector<double> result;
        for (const llvm::PHINode* other : phis_) {
            const auto found = reached.find(other->getIncomingValueForBlock(loop_.getLoopLatch()));
            result.push_back(found == reached.end() ? no_path : found->second);
        }
        return result;
    }

    const llvm::Loop &loop_, &all_;  // the other one: over all work-items
    const LaneShapes& shapes_;
    const double registers_;
    llvm::SmallVector<llvm::BasicBlock*> blocks_;  // in reverse post-order
    llvm::SmallVector<const llvm::PHINode*> phis_;  // of the header, that vary between lanes
    llvm::DenseMap<const llvm::Value*, double> latencies_;
    size_t alive_ = 0;
    double work_, chain_ = 0;
    size_t asked_ = 0;  // accesses
    double shared_ = 0;  // the work that all lanes share
    size_t branches_ = 0;  // that all lanes share
    bool walks_ = false;
    bool skips_ = false;  // code that no lane needs, in most iterations perhaps: more lanes skip it less often
    const bool leaves_;
};

// Whether the lanes' copies of private variables stay in the nearest cache.
bool have_near_privates(const LanePlan& plan, unsigned vectors) {
    constexpr uint64_t bytes_max = 16384;
    uint64_t bytes = 0;
    for (const llvm::AllocaInst* variable : plan.privates.all())
        bytes += vectors * plan.privates.bytes_of_all_lanes(*variable);
    return bytes <= bytes_max;
}

// For each choice of vectors, the time of one vector of work-items, weighed by the loops around each block.
class Choices {
public:
    Choices(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned registers, unsigned lanes,
            const LaneTarget& prices)
        : plan_(plan), shapes_(shapes), accesses_(accesses), registers_(registers), prices_(prices),
          times_(shapes, accesses, lanes, prices) {}

    // False where there is an instruction whose time is not known.
    bool count() {
        return llvm::all_of(plan_.blocks, [&](llvm::BasicBlock* block) {
            if (is_in_fallback_loop(*plan_.loops, block))
                return true;
            size_ += block->size();
            const llvm::Loop& loop = *plan_.loops->getLoopFor(block);
            const double weight = weight_of_block(loop.getLoopDepth() - plan_.loop->getLoopDepth());
            if (&loop == plan_.loop || !loop.isInnermost())
                return count(*block, weight);
            return loop.getHeader() != block || count(loop, weight);
        });
    }

    // Each choice must gain, compared with the one before.
    [[nodiscard]] unsigned best() const {
        constexpr size_t instructions_of_all_max = 2600;
        constexpr double gain_of_doubling = 1.12;
        size_t best = 0;
        while (best + 1 < vectors.size() && vectors[best + 1] <= vectors_max_ &&
               vectors[best + 1] * size_ <= instructions_of_all_max && have_near_privates(plan_, vectors[best + 1]) &&
               all_[best] >= gain_of_doubling * all_[best + 1])
            ++best;
        return vectors[best];
    }

private:
    static constexpr std::array<unsigned, 3> vectors{1, 2, 4};

    bool count(const llvm::Loop& loop, double weight) {
        constexpr unsigned max_of_leaving_lanes = 2;  // four rarely gain more, and wait longer for the last lane
        WaitingLoop waiting(loop, plan_, shapes_, registers_, prices_);
        if (!waiting.count(plan_, times_, accesses_))
            return false;
        if (waiting.leaves())
            vectors_max_ = max_of_leaving_lanes;
        for (const auto& [all, count] : llvm::zip(all_, vectors))
            all += weight * waiting.time(count);
        return true;
    }

    // Code that is in no innermost loop: only its work counts.
    bool count(llvm::BasicBlock& block, double weight) {
        return llvm::all_of(block, [&](llvm::Instruction& instruction) {
            if (instruction.isTerminator() || &instruction == plan_.next || &instruction == plan_.compare ||
                (!instruction.getType()->isVoidTy() && shapes_.of(&instruction).is_strided()))
                return true;
            const std::optional<LaneTime> time = times_.of(instruction);
            if (time)
                for (double& all : all_)
                    all += weight * time->work;
            return time.has_value();
        });
    }

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    const unsigned registers_;
    const LaneTarget& prices_;
    LaneTimes times_;
    std::array<double, vectors.size()> all_{};
    unsigned vectors_max_ = vectors.back();
    size_t size_ = 0;
};

}  // namespace

unsigned vectors_for_waiting_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                   const llvm::TargetTransformInfo& target, unsigned lanes, const LaneTarget& prices) {
    const unsigned registers = target.getNumberOfRegisters(target.getRegisterClassForType(true));
    Choices choices(plan, shapes, accesses, registers, lanes, prices);
    return choices.count() ? choices.best() : 1;
}

}  // namespace polder::compiler::workgroup
