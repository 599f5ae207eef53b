// What was measured on a processor with AVX-512 (Zen 4), whose instructions on 512 bits take twice as long as those on 256 (decision 247):
// - Scalar instructions run beside those on vectors, and so do loads and stores of whole registers.
// - Elements that are n apart in memory are n loads, and n - 1 shuffles for each of them, which LLVM partly cancels.
// - A gather of elements that are a few apart is slower than whole vectors, also where `quick_for_all` makes it cheaper than single loads.
// - Elements of one vector in one register are one chain where split vectors are several, so processors overlap less of them.
#include "lane_work.h"

#include "call_costs.h"
#include "explicit_vectors.h"
#include "lane_cost.h"
#include "targets/host/loops/hoisted_loads.h"
#include "targets/host/workgroup/frame/accumulators.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/uniform_arms.h"

#include <algorithm>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <utility>

namespace polder::compiler::workgroup {

namespace {

constexpr double scalar_work = 0.1, access_work = 0.5, mask_of_elements = 3;

class Work {
public:
    Work(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned lanes,
         const LaneTarget& target)
        : plan_(plan), shapes_(shapes), accesses_(accesses), lanes_(lanes), target_(target),
          apart_(plan, shapes, target.gathers),
          a_few_apart_(plan, shapes, target.gathers == Gathers::quick ? Gathers::quick : Gathers::slow) {}

    double of(llvm::Instruction& instruction) {
        if (llvm::isa<llvm::PHINode, llvm::AssumeInst>(instruction) || instruction.isTerminator() ||
            instruction.isLifetimeStartOrEnd() || &instruction == plan_.next || &instruction == plan_.compare)
            return 0;
        if (llvm::getLoadStorePointerOperand(&instruction) != nullptr && is_simple_access(instruction))
            return of_access(instruction);
        if (!instruction.getType()->isVoidTy() && shapes_.of(&instruction).is_strided())
            return scalar_work;
        if (moves_elements(instruction))
            return of_moves(instruction);
        if (is_call_for_lanes(instruction, lanes_))
            return costs_of_call(instruction, lanes_).lanes;
        if (!is_vector_instruction(instruction)) {
            constexpr double call_per_lane = 3;
            return call_per_lane * lanes_;
        }
        constexpr double one_chain = 1.2;
        return registers(*instruction.getType()) * (instruction.getType()->isVectorTy() ? one_chain : 1);
    }

    // What the accesses of the block would take to repeat its mask for each element if each of them did, instead of all together.
    double masks_at_each_access() { return std::exchange(masks_, 0.0); }

    // The time of the shortest iteration of a loop of one block that adds up floating-point numbers: four cycles for a sum, in which a processor
    // executes four instructions on 512 bits or eight on fewer.
    [[nodiscard]] double least_of_iteration(const llvm::BasicBlock& block) const {
        constexpr double four_cycles_of_512_bits = 4, four_cycles = 8;
        const llvm::Loop* const loop = plan_.loops->getLoopFor(&block);
        const bool is_sum = loop != plan_.loop && loop->getNumBlocks() == 1 &&
                            llvm::any_of(block.phis(), [&](const llvm::PHINode& phi) {
                                return phi.getType()->isFPOrFPVectorTy() && !shapes_.of(&phi).is_uniform();
                            });
        if (!is_sum)
            return 0;
        return target_.register_words == words_of_512_bits ? four_cycles_of_512_bits : four_cycles;
    }

private:
    // The registers that `lanes_` values of `type` fill. On processors with registers of 512 bits, one that is at most half full counts half.
    double registers(llvm::Type& type, unsigned times = 1) const {
        constexpr unsigned byte = 8, word = 32;
        const unsigned element =
            type.isPtrOrPtrVectorTy() ? 2 * word : std::max(static_cast<unsigned>(type.getScalarSizeInBits()), byte);
        const double filled =
            static_cast<double>(element) * elements_of_lane(type) * lanes_ * times / (word * target_.register_words);
        const double least = target_.register_words == words_of_512_bits ? 1.0 / 2 : 1;
        return std::max(filled, least);
    }

    double of_access(llvm::Instruction& instruction) {
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        llvm::Type& type = *llvm::getLoadStoreType(&instruction);
        if (shapes_.of(address).is_uniform())
            return access_work;
        if (const ConstantTable* const table = accesses_.table_of(instruction))
            return table->instructions(lanes_);
        const bool is_masked = plan_.masked.contains(instruction.getParent());
        const std::optional<LaneAccess> access = accesses_.of(instruction);
        const bool is_store = llvm::isa<llvm::StoreInst>(instruction);
        if (!access || (is_store && access->step > 1 && !access->is_whole_group()))
            return apart(instruction, type, is_masked);
        constexpr double question = 2;
        const bool is_asked = !access->is_certain || (is_masked && !access->takes_mask);
        const double members = access->is_whole_group() ? static_cast<double>(access->group.size()) : 1;
        const auto step = static_cast<unsigned>(std::max<int64_t>(access->step, 1));
        const double row = registers(type, step);
        const double shuffles =
            access->step == 1 || are_cancelled(*access, instruction) ? 0 : std::max(row - 1, registers(type));
        if (is_masked && type.isVectorTy())
            masks_ += mask_of_elements;
        return access_work * row / members + shuffles + (is_asked ? question / members : 0);
    }

    // LLVM moves shuffles behind operations on the elements, where those of loads and those of stores cancel each other. It does not move them out of
    // loops, nor cancel those of every second vector.
    bool are_cancelled(const LaneAccess& access, const llvm::Instruction& instruction) const {
        return access.is_whole_group() && access.step <= lane_structure_max &&
               plan_.loops->getLoopFor(instruction.getParent()) == plan_.loop;
    }

    double apart(llvm::Instruction& instruction, llvm::Type& type, bool is_masked) {
        // Part of a register is loaded or stored, and joined or divided. To store it takes as long as a scatter takes for one lane.
        // Inactive lanes load from another address, which is chosen for all at once.
        constexpr double loaded_per_lane = 1, stored_per_lane = 3, chosen = 1, chosen_per_lane = 2;
        if (type.isVectorTy() && llvm::isa<llvm::StoreInst>(instruction))
            return lanes_ * stored_per_lane;
        if (type.isVectorTy() && is_masked)
            masks_ += lanes_ * chosen_per_lane;
        if (type.isVectorTy())
            return lanes_ * loaded_per_lane + (is_masked ? chosen : 0);
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
            if (const size_t elements = accesses_.structure_of(*load).size();
                accesses_.is_loaded_at_once(type, elements))
                return cost_of_structure_element(type, elements, lanes_) / 2;
        const bool is_a_few_apart = shapes_.of(llvm::getLoadStorePointerOperand(&instruction)).is_strided();
        return (is_a_few_apart ? a_few_apart_ : apart_).of(instruction, lanes_) /
               static_cast<double>(accesses_.elements_stored_with(
                   instruction, is_masked ? LaneAccesses::Stored::some_lanes : LaneAccesses::Stored::all_lanes));
    }

    // An element that is repeated in all elements of another vector is moved once.
    double of_moves(llvm::Instruction& instruction) const {
        const auto is_repeated = [](const llvm::User* user) {
            const auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(user);
            return insert && llvm::isa<llvm::UndefValue>(insert->getOperand(0));
        };
        if (llvm::isa<llvm::ExtractElementInst>(instruction) && llvm::all_of(instruction.users(), is_repeated))
            return 0;
        return moves_in_lanes(instruction, lanes_, target_.permutes) * registers(*instruction.getType());
    }

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    const unsigned lanes_;
    const LaneTarget& target_;
    ApartCosts apart_, a_few_apart_;
    double masks_ = 0;
};

// How many loops are around the code that computes the block's mask. In loops whose lanes all do the same it stays as it is.
unsigned loops_around_mask(const llvm::BasicBlock& block, const LanePlan& plan) {
    const llvm::Loop* loop = plan.loops->getLoopFor(&block);
    for (const llvm::Loop* around = loop; around != plan.loop; around = around->getParentLoop())
        if (llvm::none_of(around->blocks(), [&](llvm::BasicBlock* one) { return plan.divergent.contains(one); }))
            loop = around->getParentLoop();
    return loop->getLoopDepth() - plan.loop->getLoopDepth();
}

}  // namespace

LaneWork work_of_lanes(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned lanes,
                       const LaneTarget& target) {
    Work work(plan, shapes, accesses, lanes, target);
    const UniformArms arms(plan, shapes);
    double all = 0, masks = 0;
    for (llvm::BasicBlock* block : plan.blocks) {
        if (is_in_fallback_loop(*plan.loops, block))
            continue;
        const double weight =
            arms.part_of(*block) * weight_of_block(plan.loops->getLoopDepth(block) - plan.loop->getLoopDepth());
        // The masks of both ways, a question whether any lane takes one, and values chosen where they meet: as many instructions for few lanes as for many.
        constexpr double divergent_branch = 4;
        double its = plan.divergent.contains(block) ? divergent_branch : 0;
        for (llvm::Instruction& instruction : *block)
            its += work.of(instruction);
        all += weight * std::max(its, work.least_of_iteration(*block));
        if (const double at_each_access = work.masks_at_each_access(); at_each_access > 0) {
            const double together =
                arms.part_of(*block) * mask_of_elements * weight_of_block(loops_around_mask(*block, plan));
            all += together;
            masks += weight * at_each_access - together;
        }
    }
    return {all / lanes, masks / lanes};
}

}  // namespace polder::compiler::workgroup
