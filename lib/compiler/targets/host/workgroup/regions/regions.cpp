#include "regions.h"

#include "carried_values.h"
#include "debug_variables.h"
#include "loop_nest.h"
#include "targets/host/workgroup/abi.h"
#include "targets/host/workgroup/hoisting.h"
#include "targets/host/workgroup/sub_group_functions.h"
#include "targets/host/workgroup/vectorizer/vectorizer.h"
#include "targets/host/workgroup/work_item_functions.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>
#include <map>

namespace polder::compiler::workgroup {

namespace {

class WorkItemLoops {
public:
    WorkItemLoops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts)
        : kernel_(kernel), function_(*kernel.function), uniformity_(uniformity), cuts_(cuts),
          context_(function_.getContext()), original_(blocks_but(kernel.prologue)), local_ids_(local_ids()),
          debug_variables_(original_), regions_(*kernel.prologue->getSingleSuccessor(), cuts),
          carried_(kernel, uniformity, cuts, regions_) {}

    RegionStatistics run() {
        return_ = llvm::BasicBlock::Create(context_, "return", &function_);
        llvm::ReturnInst::Create(context_, return_);
        for (Region& region : regions_.all())
            region.preheader = llvm::BasicBlock::Create(context_, "region", &function_);
        for (llvm::BasicBlock* cut : cuts_)
            dispatch_[cut] = llvm::BasicBlock::Create(context_, "dispatch", &function_);
        for (Region& region : regions_.all())
            emit(region);
        for (llvm::BasicBlock* cut : cuts_)
            emit_dispatch(*cut);
        replace_body();
        llvm::DominatorTree dominators(function_);
        llvm::PromoteMemToReg(carried_.registers(), dominators);
        return carried_.statistics();
    }

private:
    [[nodiscard]] std::vector<llvm::BasicBlock*> blocks_but(const llvm::BasicBlock* excluded) const {
        std::vector<llvm::BasicBlock*> blocks;
        for (llvm::BasicBlock& block : function_)
            if (&block != excluded)
                blocks.push_back(&block);
        return blocks;
    }
    [[nodiscard]] llvm::SmallVector<std::pair<llvm::Instruction*, unsigned>> local_ids() const {
        llvm::SmallVector<std::pair<llvm::Instruction*, unsigned>> ids;
        for (llvm::Instruction& instruction : llvm::instructions(function_))
            if (const auto dimension = local_id_dimension(instruction))
                ids.emplace_back(&instruction, *dimension);
        return ids;
    }

    // One region ------------------------------------------------------------------------------------

    struct Rejoin {
        llvm::Instruction* original;
        llvm::Value* at_entry;
    };

    void emit(Region& region) {
        if (llvm::any_of(region.blocks, [](auto* block) { return has_sub_group_operation(*block); })) {
            SubGroupLoops loops = make_sub_group_loops(kernel_, *region.preheader);
            finish_region(region, *loops.done, &carried_.make_shared(llvm::Type::getInt32Ty(context_), "next"));
            emit_body(region, loops.whole);
            tag_loop(loops.whole, whole_sub_group_tag, nullptr);
            emit_body(region, loops.any);
            tag_loop(loops.any, sub_group_tag, nullptr);
            return;
        }
        ItemLoops loops = make_item_loops(kernel_, *region.preheader);
        finish_region(region, *loops.done, nullptr);
        emit_body(region, loops.nest);
        mark_parallel(loops.nest);
    }

    void emit_body(Region& region, LoopNest& nest) {
        llvm::ValueToValueMapTy map;
        llvm::SmallVector<Rejoin> rejoins;
        bind_entry_values(region, nest, map, rejoins);
        const llvm::SmallVector<llvm::BasicBlock*> body = clone_body(region, map);
        if (region.entry != regions_.all().front().entry)
            debug_variables_.describe(*entry_, [&](llvm::Value* value) { return at_entry(region, *value, map); });
        connect_exits(region, nest, map, body, rejoins);
        hoist(region, body, map);
    }

    // After the last work-item: on to the cut that they reached.
    void finish_region(Region& region, llvm::BasicBlock& done, llvm::AllocaInst* next) {
        llvm::IRBuilder<> at(&done);
        if (region.exits.empty()) {
            at.CreateBr(return_);
        } else if (region.exits.size() == 1 && !region.returns) {
            at.CreateBr(dispatch_[region.exits[0]]);
        } else {
            next_ = next ? next : carried_.make_register(at.getInt32Ty(), "next");
            llvm::IRBuilder<>(region.preheader->getTerminator()).CreateStore(at.getInt32(0), next_);
            llvm::SwitchInst* choose = at.CreateSwitch(at.CreateLoad(at.getInt32Ty(), next_), return_);
            for (size_t i = 0; i < region.exits.size(); ++i)
                choose->addCase(at.getInt32(static_cast<uint32_t>(i + 1)), dispatch_[region.exits[i]]);
            return;
        }
        next_ = nullptr;
    }

    // Makes what the region needs from before available at its entry.
    void bind_entry_values(Region& region, LoopNest& nest, llvm::ValueToValueMapTy& map,
                           llvm::SmallVector<Rejoin>& rejoins) {
        if (carried_.alive() && region.entry != regions_.all().front().entry)
            nest.entry = check_alive(nest);
        llvm::IRBuilder<> at(nest.entry);
        llvm::IRBuilder<> once(region.preheader->getTerminator());
        for (auto [call, dimension] : local_ids_)
            map[call] = nest.ids[dimension];
        for (llvm::AllocaInst* variable : carried_.crossing()) {
            llvm::Value* address = carried_.item_address(at, variable, nest.index);
            if (address->getType() != variable->getType())
                address = at.CreateAddrSpaceCast(address, variable->getType());
            map[variable] = address;
        }
        const llvm::SmallVector<llvm::Instruction*> live = carried_.live_in(*region.entry);
        for (llvm::Instruction* value : live) {
            llvm::Value* here = nullptr;
            if (uniformity_.is_uniform(value)) {
                here = once.CreateLoad(value->getType(), carried_.uniform_slot(value));
            } else if (carried_.is_recomputable(value)) {
                here = carried_.recompute(at, *value, map);
            } else {
                here = carried_.load_item(at, value, nest.index);
            }
            if (!region.blocks.contains(value->getParent()))
                map[value] = here;
            else
                rejoins.push_back({value, here});
        }
        index_ = nest.index;
        entry_ = nest.entry;
        ids_ = nest.ids;
    }

    // The replacement of a value of the kernel where the region begins; null when it is not there.
    llvm::Value* at_entry(const Region& region, llvm::Value& value, const llvm::ValueToValueMapTy& map) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (!instruction || instruction->getParent() == kernel_.prologue)
            return &value;
        return region.blocks.contains(instruction->getParent()) ? nullptr : map.lookup(&value);
    }

    // Skips work-items that returned in an earlier region.
    llvm::BasicBlock* check_alive(LoopNest& nest) {
        auto* first = llvm::BasicBlock::Create(context_, "item.alive", &function_);
        llvm::IRBuilder<> at(nest.entry);
        llvm::Value* alive =
            at.CreateLoad(at.getInt8Ty(), at.CreateInBoundsGEP(at.getInt8Ty(), carried_.alive(), nest.index));
        at.CreateCondBr(at.CreateIsNotNull(alive), first, nest.latch);
        return first;
    }

    llvm::SmallVector<llvm::BasicBlock*> clone_body(const Region& region, llvm::ValueToValueMapTy& map) {
        llvm::SmallVector<llvm::BasicBlock*> body;
        llvm::SmallVector<llvm::BasicBlock*> order = reverse_post_order(region);
        for (llvm::BasicBlock* block : order) {
            llvm::BasicBlock* copy = llvm::CloneBasicBlock(block, map, "", &function_);
            map[block] = copy;
            body.push_back(copy);
            for (llvm::PHINode& phi : block->phis()) {
                auto* copied = llvm::cast<llvm::PHINode>(map[&phi]);
                for (unsigned i = phi.getNumIncomingValues(); i-- > 0;)
                    if (!region.blocks.contains(phi.getIncomingBlock(i)))
                        copied->removeIncomingValue(i, false);
            }
        }
        // A local id that the body computes is the loop's counter.
        for (llvm::BasicBlock* block : order)
            for (llvm::Instruction& instruction : *block)
                if (const auto dimension = local_id_dimension(instruction)) {
                    llvm::cast<llvm::Instruction>(map[&instruction])->eraseFromParent();
                    map[&instruction] = ids_[*dimension];
                }
        for (llvm::BasicBlock* block : body)
            for (llvm::Instruction& instruction : *block) {
                const auto flags = llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals;
                llvm::RemapInstruction(&instruction, map, flags);
                llvm::RemapDbgRecordRange(function_.getParent(), instruction.getDbgRecordRange(), map, flags);
            }
        llvm::BranchInst::Create(llvm::cast<llvm::BasicBlock>(map[region.entry]), entry_);
        return body;
    }

    llvm::SmallVector<llvm::BasicBlock*> reverse_post_order(const Region& region) {
        llvm::SmallVector<llvm::BasicBlock*> order;
        llvm::SmallPtrSet<llvm::BasicBlock*, 16> seen{region.entry};
        llvm::SmallVector<std::pair<llvm::BasicBlock*, llvm::succ_iterator>> stack{
            {region.entry, succ_begin(region.entry)}};
        while (!stack.empty()) {
            auto& [block, next] = stack.back();
            if (next == llvm::succ_end(block)) {
                order.push_back(block);
                stack.pop_back();
                continue;
            }
            llvm::BasicBlock* successor = *next++;
            if (region.blocks.contains(successor) && seen.insert(successor).second)
                stack.emplace_back(successor, llvm::succ_begin(successor));
        }
        std::reverse(order.begin(), order.end());
        return order;
    }

    void connect_exits(Region& region, LoopNest& nest, llvm::ValueToValueMapTy& map,
                       llvm::ArrayRef<llvm::BasicBlock*> body, llvm::ArrayRef<Rejoin> rejoins) {
        std::map<llvm::BasicBlock*, llvm::BasicBlock*> exit_of;  // cut, or null for return
        const auto exit_block = [&](llvm::BasicBlock* cut) {
            llvm::BasicBlock*& block = exit_of[cut];
            if (!block) {
                block = llvm::BasicBlock::Create(context_, cut ? "item.stop" : "item.return", &function_);
                llvm::BranchInst::Create(nest.latch, block);
            }
            return block;
        };
        for (llvm::BasicBlock* block : body) {
            llvm::Instruction* terminator = block->getTerminator();
            if (llvm::isa<llvm::ReturnInst>(terminator)) {
                terminator->eraseFromParent();
                llvm::BranchInst::Create(exit_block(nullptr), block);
                continue;
            }
            for (unsigned i = 0; i < terminator->getNumSuccessors(); ++i)
                if (cuts_.contains(terminator->getSuccessor(i)))
                    terminator->setSuccessor(i, exit_block(terminator->getSuccessor(i)));
        }
        rejoin(map, rejoins);
        for (auto [cut, block] : exit_of) {
            llvm::IRBuilder<> at(block->getTerminator());
            if (cut)
                save_live_values(at, region, *cut, map);
            if (carried_.alive() && (region.is_mixed() || region.entry == regions_.all().front().entry))
                at.CreateStore(at.getInt8(cut ? 1 : 0), at.CreateInBoundsGEP(at.getInt8Ty(), carried_.alive(), index_));
            if (cut && next_) {
                const auto number = llvm::find(region.exits, cut) - region.exits.begin() + 1;
                at.CreateStore(at.getInt32(static_cast<uint32_t>(number)), next_);
            }
        }
    }

    // A value that the region both receives and defines: joins the two wherever both may arrive.
    void rejoin(llvm::ValueToValueMapTy& map, llvm::ArrayRef<Rejoin> rejoins) {
        joined_.clear();
        for (const Rejoin& value : rejoins) {
            auto* defined = llvm::cast<llvm::Instruction>(map[value.original]);
            auto updater = std::make_unique<llvm::SSAUpdater>();
            updater->Initialize(value.original->getType(), value.original->getName());
            updater->AddAvailableValue(entry_, value.at_entry);
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

    void save_live_values(llvm::IRBuilder<>& at, const Region& region, llvm::BasicBlock& cut,
                          llvm::ValueToValueMapTy& map) {
        for (llvm::Instruction* value : carried_.live_in(cut)) {
            if (!region.blocks.contains(value->getParent()))
                continue;  // unchanged since the region's entry
            const bool uniform = uniformity_.is_uniform(value);
            if (!uniform && carried_.is_recomputable(value))
                continue;
            const auto joined = joined_.find(value);
            llvm::Value* here = joined == joined_.end() ? static_cast<llvm::Value*>(map[value])
                                                        : joined->second->GetValueInMiddleOfBlock(at.GetInsertBlock());
            if (uniform)
                at.CreateStore(here, carried_.uniform_slot(value));
            else
                carried_.store_item(at, value, here, index_);
        }
    }

    // Computes before the loops what is uniform, pure and depends on nothing inside.
    void hoist(const Region& region, llvm::ArrayRef<llvm::BasicBlock*> body, const llvm::ValueToValueMapTy& map) {
        llvm::DenseMap<const llvm::Instruction*, bool> uniform;
        for (llvm::BasicBlock* block : region.blocks)
            for (llvm::Instruction& instruction : *block)
                if (uniformity_.is_uniform(&instruction))
                    if (const auto* copy = llvm::dyn_cast_or_null<llvm::Instruction>(map.lookup(&instruction)))
                        uniform[copy] = true;
        const auto is_outside = [&](llvm::Value* value) {
            const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
            return !instruction || instruction->getParent() == kernel_.prologue ||
                   instruction->getParent() == region.preheader;
        };
        for (llvm::BasicBlock* block : body)
            for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block))
                if (uniform.lookup(&instruction) && is_movable(instruction) &&
                    llvm::all_of(instruction.operands(), is_outside))
                    instruction.moveBefore(region.preheader->getTerminator()->getIterator());
    }

    // Tells the loop vectorizer that work-items are independent between cuts. Atomics stay outside of the
    // promise, and so does private memory that work-items use one after the other.
    void mark_parallel(const LoopNest& nest) {
        llvm::MDNode* group = llvm::MDNode::getDistinct(context_, {});
        llvm::SmallPtrSet<llvm::BasicBlock*, 16> seen{nest.latch};
        llvm::SmallVector<llvm::BasicBlock*> todo{nest.head};
        while (!todo.empty()) {
            llvm::BasicBlock* block = todo.pop_back_val();
            if (!seen.insert(block).second)
                continue;
            todo.append(llvm::succ_begin(block), llvm::succ_end(block));
            for (llvm::Instruction& instruction : *block)
                if (instruction.mayReadOrWriteMemory() && !instruction.isAtomic() && !instruction.isVolatile() &&
                    !touches_shared_private(instruction))
                    instruction.setMetadata(llvm::LLVMContext::MD_access_group, group);
        }
        tag_loop(nest, work_item_loop_tag, group);
    }

    bool touches_shared_private(const llvm::Instruction& instruction) {
        const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
        if (!address)
            return carried_.has_staying();
        llvm::SmallVector<const llvm::Value*> objects;
        llvm::getUnderlyingObjects(address, objects, nullptr, 0);
        return llvm::any_of(objects, [&](const llvm::Value* object) {
            const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object);
            return variable && carried_.stays(variable);
        });
    }

    // The frame ---------------------------------------------------------------------------------------

    void emit_dispatch(llvm::BasicBlock& cut) {
        llvm::Instruction* terminator = cut.getTerminator()->clone();
        terminator->insertInto(dispatch_[&cut], dispatch_[&cut]->end());
        for (unsigned i = 0; i < terminator->getNumSuccessors(); ++i)
            terminator->setSuccessor(i, regions_.entered_at(terminator->getSuccessor(i)).preheader);
        if (terminator->getNumSuccessors() < 2)
            return;
        auto* condition = llvm::dyn_cast<llvm::Instruction>(terminator->getOperand(0));
        llvm::AllocaInst* slot = condition ? carried_.uniform_slot(condition) : nullptr;
        if (!slot)
            return;
        llvm::IRBuilder<> at(terminator);
        terminator->setOperand(0, at.CreateLoad(condition->getType(), slot));
    }

    void replace_body() {
        kernel_.prologue->getTerminator()->setSuccessor(0, regions_.all().front().preheader);
        for (llvm::BasicBlock* block : original_)
            block->dropAllReferences();
        for (llvm::BasicBlock* block : original_)
            block->eraseFromParent();
    }

    const LoweredKernel& kernel_;
    llvm::Function& function_;
    const Uniformity& uniformity_;
    const Cuts& cuts_;
    llvm::LLVMContext& context_;

    std::vector<llvm::BasicBlock*> original_;
    llvm::SmallVector<std::pair<llvm::Instruction*, unsigned>> local_ids_;
    DebugVariables debug_variables_;
    Regions regions_;
    CarriedValues carried_;

    llvm::BasicBlock* return_ = nullptr;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> dispatch_;  // of each cut

    // Of the region being emitted.
    llvm::AllocaInst* next_ = nullptr;  // where the work-items go, when that is not known before
    llvm::Value* index_ = nullptr;
    llvm::BasicBlock* entry_ = nullptr;
    std::array<llvm::Value*, id_count> ids_{};
    std::map<const llvm::Value*, std::unique_ptr<llvm::SSAUpdater>> joined_;
};

} // namespace

RegionStatistics form_work_item_loops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts) {
    llvm::BasicBlock* body = kernel.prologue->getSingleSuccessor();
    auto* entry = llvm::BasicBlock::Create(body->getContext(), "region", kernel.function, body);
    llvm::BranchInst::Create(body, entry);
    kernel.prologue->getTerminator()->replaceSuccessorWith(body, entry);
    body->replacePhiUsesWith(kernel.prologue, entry);
    const RegionStatistics statistics = WorkItemLoops(kernel, uniformity, cuts).run();
    for (unsigned i : {abi::local_memory, abi::scratch})
        kernel.function->addParamAttr(i, llvm::Attribute::NoAlias);
    return statistics;
}

} // namespace polder::compiler::workgroup
