// For each innermost loop, the latency of its longest chain for one iteration is compared with the time that the iteration's instructions
// take when nothing waits. The ratio is how many vectors can run in the time of one; from 1.5 to 2 on there are two. The chain is a cycle through the loop's phis: with D[i][j] the latency from phi i to the next value of
// phi j, it is the greatest mean of a cycle of D.
#include "interleaving.h"

#include "growth.h"
#include "lane_cost.h"
#include "registers_alive.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "waiting_loops.h"

#include <algorithm>
#include <cstdlib>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
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
              const llvm::TargetTransformInfo& target, unsigned lanes, const LaneTarget& prices)
        : loop_(loop), blocks_(chain_of_blocks(loop)), shapes_(shapes), accesses_(accesses), target_(target),
          lanes_(lanes), prices_(prices) {}

    unsigned vectors() {
        if (!count_all())
            return vectors_of_search();
        unsigned vectors = 1;
        while (vectors < vectors_max && is_waiting(vectors) && have_registers(2 * vectors))
            vectors *= 2;
        if (vectors == 1 && prices_.loads == Loads::scarce && waits_for_loads() && have_registers(2))
            vectors = 2;
        return vectors;
    }

    // The same for a loop that lanes leave at different times: it runs until the last of twice as many lanes has left, which takes a tenth longer where they
    // compute an escape time. Masks are further work. Only where two vector instructions start in each cycle, which a Zen 4 does not with 512 bits.
    unsigned vectors_of_search() {
        constexpr double work_of_masks = 2;
        const bool starts_two = prices_.loads == Loads::scarce || prices_.register_words < words_of_512_bits;
        if (!starts_two || !is_left_by_some() || !count_body() || accesses_of_one_ > 0)
            return 1;
        work_ += work_of_masks;
        return longest_chain() >= waiting_ratio * work_ && have_registers(2) ? 2 : 1;
    }

    // Whether `vectors` vectors can run at once, and registers hold their values.
    bool fits(unsigned vectors) { return count_all() && have_registers(vectors); }

    // The same for a loop whose lanes leave it in their order, all in the last two iterations.
    bool fits_in_strides(unsigned vectors) { return is_left_in_order() && count_body() && have_registers(vectors); }

private:
    static constexpr size_t temporaries = 2;
    static constexpr double waiting_ratio = 1.5;  // of a chain to the work, from which two vectors gain

    bool count_all() { return is_left_by_all_at_once() && count_body(); }

    bool count_body() {
        for (llvm::BasicBlock* block : blocks_)
            for (llvm::Instruction& instruction : *block)
                if (varies(instruction) && !count(instruction))
                    return false;
        return !blocks_.empty() && phis_.size() <= chains_max && work_ != 0;
    }

    // Whether the processor waits for the chain although it executes `vectors` vectors: for as long as they take, or for half as long where
    // what all lanes share, which does not become more with more vectors, is counted, too.
    [[nodiscard]] bool is_waiting(unsigned vectors) {
        const double shared = 0.5 * static_cast<double>(shared_in_loop_.size());
        return longest_chain() >= 2 * vectors * work_ || longest_chain() >= waiting_ratio * (vectors * work_ + shared);
    }

    // Whether at least as many operands are loaded as instructions compute, and most of them are the same for all lanes: two vectors share those.
    [[nodiscard]] bool waits_for_loads() const {
        return accesses_of_one_ + shared_in_loop_.size() >= operations_ && shared_in_loop_.size() > accesses_of_one_;
    }

    [[nodiscard]] bool have_registers(unsigned vectors) const {
        const unsigned registers = target_.getNumberOfRegisters(target_.getRegisterClassForType(true));
        return vectors * (phis_.size() + kept_.size() + temporaries) + shared_.size() <= registers;
    }

    [[nodiscard]] bool varies(const llvm::Value& value) const { return !shapes_.of(&value).is_strided(); }

    // The blocks of a loop without inner branches in their order: each goes on to the next or leaves the loop. Empty for other loops.
    static llvm::SmallVector<llvm::BasicBlock*, 2> chain_of_blocks(const llvm::Loop& loop) {
        llvm::SmallVector<llvm::BasicBlock*, 2> found;
        llvm::BasicBlock* block = loop.getHeader();
        do {
            found.push_back(block);
            llvm::BasicBlock* next = nullptr;
            for (llvm::BasicBlock* successor : llvm::successors(block))
                if (loop.contains(successor)) {
                    if (next != nullptr)
                        return {};
                    next = successor;
                }
            if (next == nullptr)
                return {};
            block = next;
        } while (block != loop.getHeader());
        return found;
    }

    [[nodiscard]] const llvm::BranchInst* only_branch() const {
        return blocks_.size() == 1 ? llvm::dyn_cast<llvm::BranchInst>(blocks_.front()->getTerminator()) : nullptr;
    }

    [[nodiscard]] bool is_left_by_all_at_once() const {
        const auto* const branch = only_branch();
        return branch && branch->isConditional() && shapes_.of(branch->getCondition()).is_uniform();
    }

    [[nodiscard]] bool is_left_by_some() const {
        return llvm::any_of(blocks_, [&](const llvm::BasicBlock* block) {
            const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
            return branch && branch->isConditional() && !shapes_.of(branch->getCondition()).is_strided();
        });
    }

    // Whether the branch compares what grows from lane to lane with what all lanes share.
    [[nodiscard]] bool is_left_in_order() const {
        const auto* const branch = only_branch();
        const auto* comparison =
            branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
        if (comparison == nullptr || !comparison->isRelational())
            return false;
        const LaneShape left = shapes_.of(comparison->getOperand(0)), right = shapes_.of(comparison->getOperand(1));
        return left.is_strided() && right.is_strided() && left.is_uniform() != right.is_uniform();
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
        case llvm::Intrinsic::minimumnum:
        case llvm::Intrinsic::maximumnum:
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
            ++accesses_of_one_;
            const auto access = accesses_.of(instruction);
            if (!shapes_.of(address).is_uniform() && !(access && access->is_certain && access->is_consecutive()))
                return false;
        } else if (instruction.isIntDivRem() || (llvm::isa<llvm::CallBase>(instruction) && !is_short(instruction))) {
            return false;
        } else {
            ++operations_;
            for (const llvm::Use& operand : instruction.operands())
                if (const auto* value = llvm::dyn_cast<llvm::Instruction>(operand.get());
                    value && loop_.contains(value) && shapes_.of(value).is_uniform())
                    shared_in_loop_.insert(value);
        }
        for (const llvm::Use& operand : instruction.operands())
            if (const auto* value = llvm::dyn_cast<llvm::Instruction>(operand.get()); value && !loop_.contains(value))
                (varies(*value) ? kept_ : shared_).insert(value);
        work_ += throughput(instruction);
        return true;
    }

    // Whether lanes move to other places of registers: numbers of all lanes fill more registers than before, or fewer.
    static bool changes_width(const llvm::Instruction& instruction) {
        return llvm::isa<llvm::SExtInst, llvm::ZExtInst, llvm::TruncInst>(instruction) &&
               !instruction.getOperand(0)->getType()->isIntegerTy(1) && !instruction.getType()->isIntegerTy(1);
    }

    // A product of 64 bits of numbers of 32 bits is one instruction.
    static bool is_product_of_halves(const llvm::Instruction& instruction) {
        constexpr unsigned word = 64, half = 32;
        return instruction.getOpcode() == llvm::Instruction::Mul && instruction.getType()->isIntegerTy(word) &&
               llvm::all_of(instruction.operands(), [&](const llvm::Use& operand) {
                   return llvm::ComputeNumSignBits(operand.get(), instruction.getDataLayout()) > half;
               });
    }

    // In cycles, when two vector instructions start in each cycle.
    double throughput(const llvm::Instruction& instruction) const {
        if (changes_width(instruction))
            return 1.5;
        if (!instruction.isBinaryOp())
            return 0.5;
        if (is_product_of_halves(instruction))
            return 1;
        auto* type = of_lanes(*instruction.getType(), lanes_);
        const llvm::InstructionCost cost = target_.getArithmeticInstrCost(
            instruction.getOpcode(), type, llvm::TargetTransformInfo::TCK_RecipThroughput);
        const double cycles = cost.isValid() ? static_cast<double>(std::max<int64_t>(cost.getValue(), 1)) : 1;
        return cycles > 2 ? cycles : 0.5 * cycles;
    }

    double latency(const llvm::Instruction& instruction) const {
        constexpr double product_and_sum = 4, across_lanes = 4;
        if (changes_width(instruction))
            return across_lanes;
        if (instruction.getType()->isFPOrFPVectorTy() && llvm::isa<llvm::IntrinsicInst>(instruction))
            return product_and_sum;
        const llvm::InstructionCost cost =
            target_.getInstructionCost(&instruction, llvm::TargetTransformInfo::TCK_Latency);
        return cost.isValid() ? static_cast<double>(cost.getValue()) : 1;
    }

    // The longest latencies from `phi` to the next value of each phi; `never` where there is no path.
    std::vector<double> latencies_from(const llvm::PHINode& phi) const {
        llvm::DenseMap<const llvm::Value*, double> reached{{&phi, 0}};
        for (const llvm::BasicBlock* block : blocks_)
            for (const llvm::Instruction& instruction : *block) {
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
            const auto found = reached.find(other->getIncomingValueForBlock(blocks_.back()));
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
    const llvm::SmallVector<llvm::BasicBlock*, 2> blocks_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    const llvm::TargetTransformInfo& target_;
    const unsigned lanes_;
    const LaneTarget& prices_;
    llvm::SmallVector<llvm::PHINode*> phis_;  // that vary between lanes
    llvm::SmallPtrSet<const llvm::Value*, 16> kept_,
        shared_;  // made before the loop: one for each vector, one for all vectors
    llvm::SmallPtrSet<const llvm::Value*, 16> shared_in_loop_;  // made in the loop, for all vectors
    size_t accesses_of_one_ = 0, operations_ = 0;  // of one vector
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

constexpr int64_t page_bytes = 4096;

// `sets`: how many parts of the second cache's sets the pages are in, where all buffers begin at one of them.
struct RowPages {
    size_t count = 0, sets = 0;
};

// How many bytes are added to a place of its base that may differ from work-item to work-item.
int64_t bytes_behind_item(const Place& place) {
    using namespace llvm::PatternMatch;
    const auto* const element = llvm::dyn_cast<llvm::GetElementPtrInst>(place.base);
    const llvm::APInt* added = nullptr;
    if (element == nullptr || element->getNumIndices() != 1 ||
        !match(element->getOperand(1), m_AddLike(m_Value(), m_APInt(added))) || !added->isSignedIntN(32))
        return place.offset;
    const uint64_t bytes = element->getDataLayout().getTypeAllocSize(element->getSourceElementType());
    return place.offset + added->getSExtValue() * static_cast<int64_t>(bytes);
}

// How many pages of memory the accesses of one work-item are on, at least, where all lanes' accesses are in rows; else 0. An access in an inner loop
// that is on another page in each iteration counts as many.
RowPages pages_of(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses) {
    constexpr int64_t iterations = 32;
    constexpr uint64_t way_bytes = 1 << 17, part_bytes = page_bytes / 2;
    llvm::DenseSet<std::pair<const llvm::Value*, int64_t>> pages;
    llvm::DenseSet<uint64_t> sets;
    const auto insert = [&](const Place& place, int64_t further) {
        pages.insert({place.base, (place.offset + further) / page_bytes});
        sets.insert(static_cast<uint64_t>(bytes_behind_item(place) + further) % way_bytes / part_bytes);
    };
    for (llvm::BasicBlock* block : plan.blocks) {
        const llvm::Loop* const loop = plan.loops->getLoopFor(block);
        for (llvm::Instruction& instruction : *block) {
            const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
            if (address == nullptr || shapes.of(address).is_uniform())
                continue;
            const auto access = accesses.of(instruction);
            if (!access || !access->is_certain || !access->is_consecutive())
                return {};
            const Place place = place_of(instruction);
            insert(place, 0);
            if (const auto growth = loop != plan.loop ? growth_of(address, *loop) : std::nullopt;
                growth && std::abs(*growth) >= page_bytes)
                for (int64_t iteration = 1; iteration < iterations; ++iteration)
                    insert(place, iteration * *growth);
        }
    }
    return {pages.size(), sets.size()};
}

// How many registers the values of one vector need at once.
size_t registers_for(const LanePlan& plan, const LaneShapes& shapes) {
    const auto varies = [&](const llvm::Value& value) -> size_t {
        return llvm::isa<llvm::Instruction>(value) && !value.getType()->isVoidTy() && !value.getType()->isPointerTy() &&
                       !value.getType()->isIntegerTy(1) && !shapes.of(&value).is_strided()
                   ? 1
                   : 0;
    };
    size_t most = 0;
    for (const llvm::BasicBlock* block : plan.blocks)
        most = std::max(most, registers_alive(*block, varies));
    return most;
}

// Whether the block has an access of all lanes to a row that moves in each iteration, at once by a step that is not known or by several vectors.
bool walks_in_strides(const llvm::Loop& loop, const LaneShapes& shapes, LaneAccesses& accesses, unsigned lanes) {
    return llvm::any_of(*loop.getHeader(), [&](llvm::Instruction& instruction) {
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        if (address == nullptr || shapes.of(address).is_uniform())
            return false;
        const auto access = accesses.of(instruction);
        const auto growth = growth_of(address, loop);
        const llvm::TypeSize bytes = instruction.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&instruction));
        return access && access->is_certain && access->is_consecutive() &&
               (!growth || std::abs(*growth) > static_cast<int64_t>(lanes * bytes.getFixedValue()));
    });
}

// For loops that go on by the size of the launch or of the group until the end of a row, such as `for (i = get_global_id(0); i < n; i += get_global_size(0))`.
// One vector would read a line of memory here and there, and the row's other lines in further walks along it.
unsigned vectors_of_strides(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                            const llvm::TargetTransformInfo& target, unsigned lanes, const LaneTarget& prices) {
    constexpr unsigned at_once = 2;
    unsigned vectors = 1;
    for (const llvm::Loop* loop : plan.loop->getLoopsInPreorder()) {
        if (loop == plan.loop)
            continue;
        InnerLoop inner(*loop, shapes, accesses, target, lanes, prices);
        if (!inner.fits_in_strides(at_once) || !walks_in_strides(*loop, shapes, accesses, lanes))
            return 1;
        vectors = at_once;
    }
    const size_t registers = target.getNumberOfRegisters(target.getRegisterClassForType(true));
    return vectors * registers_for(plan, shapes) <= registers ? vectors : 1;
}

// Whether the processor looks up many pages, and what it has fetched in advance of a row, the next line, is displaced before the next vector reads it: the
// rows are a power of two apart, or nearly, and share few sets of the cache. Where they are spread, several vectors would read what nothing has fetched
// (measured on a Zen 4).
bool has_rows_in_the_way(const RowPages& pages, Pages prices) {
    constexpr size_t pages_min = 24, sets_max = 12;
    return pages.count >= pages_min && (prices != Pages::dear || pages.sets <= sets_max);
}

// Long code that is emitted for more vectors takes long to compile. Code that is not short has no more vectors than have their values in registers, also
// where pages are dear: S3D's qssa2 with floats took 3 times as long.
unsigned vectors_on_many_pages(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                               const llvm::TargetTransformInfo& target, unsigned lanes, size_t size,
                               const LaneTarget& prices) {
    constexpr size_t instructions_max = 6000, short_max = 2600;
    unsigned vectors = vectors_max;
    while (vectors > 1 && size * vectors > instructions_max)
        vectors /= 2;
    const auto is_short = [&](const llvm::Loop* loop) {
        return loop == plan.loop || InnerLoop(*loop, shapes, accesses, target, lanes, prices).fits(vectors_max);
    };
    if (vectors == 1 || !plan.privates.empty() || !llvm::all_of(plan.loop->getLoopsInPreorder(), is_short) ||
        !has_rows_in_the_way(pages_of(plan, shapes, accesses), prices.pages))
        return 1;
    const size_t registers = target.getNumberOfRegisters(target.getRegisterClassForType(true));
    const size_t of_one = registers_for(plan, shapes);
    const auto is_excessive = [&](unsigned count) {
        return (prices.pages != Pages::dear || size * count > short_max) && count * of_one > registers;
    };
    while (vectors > 1 && is_excessive(vectors))
        vectors /= 2;
    return vectors;
}

unsigned vectors_of_short_loops(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                const llvm::TargetTransformInfo& target, unsigned lanes, const LaneTarget& prices) {
    size_t size = 0;
    for (const llvm::BasicBlock* block : plan.blocks)
        size += block->size();
    if (const unsigned vectors = vectors_on_many_pages(plan, shapes, accesses, target, lanes, size, prices);
        vectors > 1)
        return vectors;
    if (size > body_instructions_max || !plan.privates.empty())
        return 1;
    if (const unsigned vectors = vectors_of_strides(plan, shapes, accesses, target, lanes, prices); vectors > 1)
        return vectors;
    unsigned vectors = plan.loop->isInnermost() ? vectors_in_a_register(plan, shapes, accesses) : vectors_max;
    for (const llvm::Loop* loop : plan.loop->getLoopsInPreorder()) {
        if (loop == plan.loop || !loop->isInnermost())
            continue;
        vectors = std::min(vectors, InnerLoop(*loop, shapes, accesses, target, lanes, prices).vectors());
    }
    return vectors;
}

}  // namespace

unsigned fitting_vectors(unsigned vectors, const LanePlan& plan, unsigned lanes) {
    if (const auto* count = llvm::dyn_cast<llvm::ConstantInt>(plan.count))
        while (vectors > 1 && count->getZExtValue() % (uint64_t{lanes} * vectors) != 0)
            vectors /= 2;
    return vectors;
}

unsigned vectors_at_once(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                         const llvm::TargetTransformInfo& target, unsigned lanes, const LaneTarget& prices) {
    const unsigned vectors = vectors_of_short_loops(plan, shapes, accesses, target, lanes, prices);
    return fitting_vectors(
        vectors > 1 ? vectors : vectors_for_waiting_loops(plan, shapes, accesses, target, lanes, prices), plan, lanes);
}

}  // namespace polder::compiler::workgroup
