// The steps, in order:
// - bind_entry_values: what earlier regions computed is loaded from its place (carried_values.h) or computed again;
// - clone_blocks: the region's blocks are copied into the loop, with local ids replaced by the loop's counters;
// - connect_exits: where the copy reaches a cut, live values are stored, and the loop continues with the next work-item;
// - hoist: uniform values move before the loop.
#include "region_body.h"

#include "targets/host/workgroup/work_items/hoisting.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <algorithm>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>
#include <map>
#include <memory>

namespace polder::compiler::workgroup {

namespace {

class RegionBody {
public:
    RegionBody(const KernelRegions& shared, const Region& region, LoopNest& nest, llvm::AllocaInst* next)
        : shared_(shared), carried_(shared.carried), function_(*shared.kernel.function),
          context_(function_.getContext()), region_(region), nest_(nest), next_(next),
          is_first_(region.entry == shared.regions.all().front().entry) {}

    void emit() {
        bind_entry_values();
        clone_blocks();
        if (!is_first_)
            shared_.debug_variables.describe(*nest_.entry, [&](llvm::Value* value) { return at_entry(*value); });
        connect_exits();
        hoist();
    }

private:
    struct Rejoin {
        llvm::Instruction* original;
        llvm::Value* at_entry;
    };

    // Loads or computes again, at the start of the loop's body, the values that earlier regions computed.
    void bind_entry_values() {
        if (carried_.alive() && !is_first_)
            nest_.entry = check_alive();
        llvm::IRBuilder<> at(nest_.entry);
        llvm::IRBuilder<> once(region_.preheader->getTerminator());
        for (auto [call, dimension] : shared_.local_ids)
            map_[call] = nest_.ids[dimension];
        for (llvm::AllocaInst* variable : carried_.crossing()) {
            llvm::Value* address = carried_.item_address(at, variable, nest_.index);
            if (address->getType() != variable->getType())
                address = at.CreateAddrSpaceCast(address, variable->getType());
            map_[variable] = address;
        }
        const llvm::SmallVector<llvm::Instruction*> live = carried_.live_in(*region_.entry);
        for (llvm::Instruction* value : live) {
            llvm::Value* here = nullptr;
            if (shared_.uniformity.is_uniform(value)) {
                here = once.CreateLoad(value->getType(), carried_.uniform_slot(value));
            } else if (carried_.is_recomputable(value)) {
                here = carried_.recompute(at, *value, map_);
            } else {
                here = carried_.load_item(at, value, nest_.index);
            }
            if (!region_.blocks.contains(value->getParent()))
                map_[value] = here;
            else
                rejoins_.push_back({value, here});
        }
    }

    // What replaces a value of the kernel at the start of the body; null when the body computes the value.
    llvm::Value* at_entry(llvm::Value& value) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (!instruction || instruction->getParent() == shared_.kernel.prologue)
            return &value;
        return region_.blocks.contains(instruction->getParent()) ? nullptr : map_.lookup(&value);
    }

    // Skips work-items that returned in an earlier region.
    llvm::BasicBlock* check_alive() {
        auto* first = llvm::BasicBlock::Create(context_, "item.alive", &function_);
        llvm::IRBuilder<> at(nest_.entry);
        llvm::Value* alive =
            at.CreateLoad(at.getInt8Ty(), at.CreateInBoundsGEP(at.getInt8Ty(), carried_.alive(), nest_.index));
        at.CreateCondBr(at.CreateIsNotNull(alive), first, nest_.latch);
        return first;
    }

    // Copies the region's blocks. Branches to cuts are not changed yet.
    void clone_blocks() {
        const llvm::SmallVector<llvm::BasicBlock*> order = reverse_post_order();
        for (llvm::BasicBlock* block : order) {
            llvm::BasicBlock* copy = llvm::CloneBasicBlock(block, map_, "", &function_);
            map_[block] = copy;
            body_.push_back(copy);
            for (llvm::PHINode& phi : block->phis()) {
                auto* copied = llvm::cast<llvm::PHINode>(map_[&phi]);
                for (unsigned i = phi.getNumIncomingValues(); i-- > 0;)
                    if (!region_.blocks.contains(phi.getIncomingBlock(i)))
                        copied->removeIncomingValue(i, false);
            }
        }
        // A local id that the body computes is the loop's counter.
        for (llvm::BasicBlock* block : order)
            for (llvm::Instruction& instruction : *block)
                if (const auto dimension = local_id_dimension(instruction)) {
                    llvm::cast<llvm::Instruction>(map_[&instruction])->eraseFromParent();
                    map_[&instruction] = nest_.ids[*dimension];
                }
        for (llvm::BasicBlock* block : body_)
            for (llvm::Instruction& instruction : *block) {
                const auto flags = llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals;
                llvm::RemapInstruction(&instruction, map_, flags);
                llvm::RemapDbgRecordRange(function_.getParent(), instruction.getDbgRecordRange(), map_, flags);
            }
        llvm::BranchInst::Create(llvm::cast<llvm::BasicBlock>(map_[region_.entry]), nest_.entry);
    }

    llvm::SmallVector<llvm::BasicBlock*> reverse_post_order() const {
        llvm::SmallVector<llvm::BasicBlock*> order;
        llvm::SmallPtrSet<llvm::BasicBlock*, 16> seen{region_.entry};
        llvm::SmallVector<std::pair<llvm::BasicBlock*, llvm::succ_iterator>> stack{
            {region_.entry, succ_begin(region_.entry)}};
        while (!stack.empty()) {
            auto& [block, next] = stack.back();
            if (next == llvm::succ_end(block)) {
                order.push_back(block);
                stack.pop_back();
                continue;
            }
            llvm::BasicBlock* successor = *next++;
            if (region_.blocks.contains(successor) && seen.insert(successor).second)
                stack.emplace_back(successor, llvm::succ_begin(successor));
        }
        std::reverse(order.begin(), order.end());
        return order;
    }

    // Where a work-item reaches a cut or returns: stores its live values, and continues with the next work-item.
    void connect_exits() {
        std::map<llvm::BasicBlock*, llvm::BasicBlock*> exit_of;  // cut, or null for return
        const auto exit_block = [&](llvm::BasicBlock* cut) {
            llvm::BasicBlock*& block = exit_of[cut];
            if (!block) {
                block = llvm::BasicBlock::Create(context_, cut ? "item.stop" : "item.return", &function_);
                llvm::BranchInst::Create(nest_.latch, block);
            }
            return block;
        };
        for (llvm::BasicBlock* block : body_) {
            llvm::Instruction* terminator = block->getTerminator();
            if (llvm::isa<llvm::ReturnInst>(terminator)) {
                terminator->eraseFromParent();
                llvm::BranchInst::Create(exit_block(nullptr), block);
                continue;
            }
            for (unsigned i = 0; i < terminator->getNumSuccessors(); ++i)
                if (shared_.cuts.contains(terminator->getSuccessor(i)))
                    terminator->setSuccessor(i, exit_block(terminator->getSuccessor(i)));
        }
        rejoin();
        for (auto [cut, block] : exit_of) {
            llvm::IRBuilder<> at(block->getTerminator());
            if (cut)
                save_live_values(at, *cut);
            if (carried_.alive() && (region_.is_mixed() || is_first_))
                at.CreateStore(at.getInt8(cut ? 1 : 0),
                               at.CreateInBoundsGEP(at.getInt8Ty(), carried_.alive(), nest_.index));
            if (cut && next_) {
                const auto number = llvm::find(region_.exits, cut) - region_.exits.begin() + 1;
                at.CreateStore(at.getInt32(static_cast<uint32_t>(number)), next_);
            }
        }
    }

    // A value may be live at the region's entry and also be computed again in the region. Where either may be the current value,
    // a phi joins them.
    void rejoin() {
        for (const Rejoin& value : rejoins_) {
            auto* defined = llvm::cast<llvm::Instruction>(map_[value.original]);
            auto updater = std::make_unique<llvm::SSAUpdater>();
            updater->Initialize(value.original->getType(), value.original->getName());
            updater->AddAvailableValue(nest_.entry, value.at_entry);
            updater->AddAvailableValue(defined->getParent(), defined);
            llvm::SmallVector<llvm::Use*> uses;
            for (llvm::Use& use : defined->uses())
                uses.push_back(&use);
            for (llvm::Use* use : uses) {
                auto* user = llvm::cast<llvm::Instruction>(use->getUser());
                const auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
                const llvm::BasicBlock* at = phi ? phi->getIncomingBlock(*use) : user->getParent();
                if (at != defined->getParent())
                    updater->RewriteUse(*use);
            }
            joined_[value.original] = std::move(updater);
        }
    }

    // Stores the values of one work-item that live across `cut`.
    void save_live_values(llvm::IRBuilder<>& at, const llvm::BasicBlock& cut) {
        for (llvm::Instruction* value : carried_.live_in(cut)) {
            if (!region_.blocks.contains(value->getParent()))
                continue;  // unchanged since the region's entry
            const bool uniform = shared_.uniformity.is_uniform(value);
            if (!uniform && carried_.is_recomputable(value))
                continue;
            const auto joined = joined_.find(value);
            llvm::Value* here = joined == joined_.end() ? static_cast<llvm::Value*>(map_[value])
                                                        : joined->second->GetValueInMiddleOfBlock(at.GetInsertBlock());
            if (uniform)
                at.CreateStore(here, carried_.uniform_slot(value));
            else
                carried_.store_item(at, value, here, nest_.index);
        }
    }

    // Moves instructions before the loops when they are uniform, pure, and depend on nothing inside.
    void hoist() {
        llvm::DenseMap<const llvm::Instruction*, bool> uniform;
        for (llvm::BasicBlock* block : region_.blocks)
            for (llvm::Instruction& instruction : *block)
                if (shared_.uniformity.is_uniform(&instruction))
                    if (const auto* copy = llvm::dyn_cast_or_null<llvm::Instruction>(map_.lookup(&instruction)))
                        uniform[copy] = true;
        const auto is_outside = [&](llvm::Value* value) {
            const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
            return !instruction || instruction->getParent() == shared_.kernel.prologue ||
                   instruction->getParent() == region_.preheader;
        };
        for (llvm::BasicBlock* block : body_)
            for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block))
                if (uniform.lookup(&instruction) && is_movable(instruction) &&
                    llvm::all_of(instruction.operands(), is_outside))
                    instruction.moveBefore(region_.preheader->getTerminator()->getIterator());
    }

    const KernelRegions& shared_;
    CarriedValues& carried_;
    llvm::Function& function_;
    llvm::LLVMContext& context_;
    const Region& region_;
    LoopNest& nest_;
    llvm::AllocaInst* const next_;
    const bool is_first_;  // control enters the kernel here

    llvm::ValueToValueMapTy map_;  // from the kernel's values to those of the copy
    llvm::SmallVector<llvm::BasicBlock*> body_;  // the copy
    llvm::SmallVector<Rejoin> rejoins_;
    std::map<const llvm::Value*, std::unique_ptr<llvm::SSAUpdater>> joined_;
};

}  // namespace

void emit_region_body(const KernelRegions& kernel, const Region& region, LoopNest& nest, llvm::AllocaInst* next) {
    RegionBody(kernel, region, nest, next).emit();
}

}  // namespace polder::compiler::workgroup
