// One loop nest for each region (region_body.h), and the code between the loops: when all work-items have reached a cut,
// the cut's `dispatch` block leads to the region after it. A cut with several successors ends in a branch that is the same for
// all work-items, so its condition is read from the register of a uniform value.
#include "work_item_loops.h"

#include "first_item.h"
#include "idle_loops.h"
#include "region_body.h"
#include "targets/host/workgroup/frame/abi.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/work_items/sub_group_functions.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

namespace polder::compiler::workgroup {

namespace {

class WorkItemLoops {
public:
    WorkItemLoops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts, IdleLoops idle)
        : idle_(idle), kernel_(kernel), function_(*kernel.function), uniformity_(uniformity), cuts_(cuts),
          context_(function_.getContext()), original_(blocks_but(kernel.prologue)), local_ids_(local_ids()),
          debug_variables_(original_), regions_(*kernel.prologue->getSingleSuccessor(), cuts),
          carried_(kernel, uniformity, cuts, regions_), first_item_(kernel),
          shared_{kernel_, uniformity_, cuts_, regions_, carried_, debug_variables_, local_ids_} {}

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
        if (idle_ == IdleLoops::skipped)
            skip_idle_loops(function_);
        promote_registers();
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

    void emit(Region& region) {
        if (llvm::any_of(region.blocks, [](auto* block) { return has_sub_group_operation(*block); })) {
            SubGroupLoops loops = make_sub_group_loops(kernel_, *region.preheader);
            llvm::AllocaInst* next =
                finish_region(region, *loops.done, &carried_.make_shared(llvm::Type::getInt32Ty(context_), "next"));
            emit_region_body(shared_, region, loops.whole, next);
            tag_loop(loops.whole, whole_sub_group_tag, nullptr);
            emit_region_body(shared_, region, loops.any, next);
            tag_loop(loops.any, sub_group_tag, nullptr);
            return;
        }
        if (idle_ == IdleLoops::skipped && first_item_.is_alone(region, uniformity_, carried_)) {
            ItemLoops none = make_first_item(kernel_, *region.preheader);
            finish_region(region, *none.done, nullptr);
            emit_region_body(shared_, region, none.nest, nullptr);
            return;
        }
        ItemLoops loops = make_item_loops(kernel_, *region.preheader);
        llvm::AllocaInst* next = finish_region(region, *loops.done, nullptr);
        emit_region_body(shared_, region, loops.nest, next);
        mark_parallel(loops.nest);
    }

    // Branches from `done`, after the last work-item, to the cut that the work-items reached. Returns the variable with the number
    // of this cut; null when only one is possible. `shared`: a variable to use for it, or null.
    llvm::AllocaInst* finish_region(const Region& region, llvm::BasicBlock& done, llvm::AllocaInst* shared) {
        llvm::IRBuilder<> at(&done);
        if (region.exits.empty()) {
            at.CreateBr(return_);
            return nullptr;
        }
        if (region.exits.size() == 1 && !region.returns) {
            at.CreateBr(dispatch_[region.exits[0]]);
            return nullptr;
        }
        llvm::AllocaInst* next = shared ? shared : carried_.make_register(at.getInt32Ty(), "next");
        llvm::IRBuilder<>(region.preheader->getTerminator()).CreateStore(at.getInt32(0), next);
        llvm::SwitchInst* choose = at.CreateSwitch(at.CreateLoad(at.getInt32Ty(), next), return_);
        for (size_t i = 0; i < region.exits.size(); ++i)
            choose->addCase(at.getInt32(static_cast<uint32_t>(i + 1)), dispatch_[region.exits[i]]);
        return next;
    }

    // Promises the loop vectorizer that the memory accesses of different work-items are independent between cuts. Atomic and
    // volatile accesses are excepted, and accesses to a private variable that all work-items use in turn.
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

    // Registers ---------------------------------------------------------------------------------------

    // Whether an inner loop of `loop` may have computed the value: in it, or as what is left of it behind it.
    static bool is_from_inner_loop(const llvm::Value& value, const llvm::Loop& loop, const llvm::LoopInfo& loops) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        return instruction && loop.contains(instruction) && !loop.isInnermost() &&
               (llvm::isa<llvm::PHINode>(instruction) || loops.getLoopFor(instruction->getParent()) != &loop);
    }

    // Whether only some work-items of a loop store to `variable`; the others reach another cut, or none. The vectorizer does not handle such a store
    // of a value that an inner loop computes.
    static bool is_changed_by_some(const llvm::AllocaInst& variable, const llvm::LoopInfo& loops,
                                   const llvm::DominatorTree& dominators) {
        return llvm::any_of(variable.users(), [&](const llvm::User* user) {
            const auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
            const llvm::Loop* loop = store ? loops.getLoopFor(store->getParent()) : nullptr;
            return loop && llvm::findOptionMDForLoop(loop, work_item_loop_tag) &&
                   !is_from_inner_loop(*store->getValueOperand(), *loop, loops) &&
                   !dominators.dominates(store->getParent(), loop->getLoopLatch());
        });
    }

    // The vectorizer does not handle a loop that passes a value from one work-item to the next. So such a variable stays in memory, and LLVM's
    // passes after the vectorizer put it into a register.
    void promote_registers() {
        llvm::DominatorTree dominators(function_);
        const llvm::LoopInfo loops(dominators);
        llvm::SmallVector<llvm::AllocaInst*> registers;
        for (llvm::AllocaInst* variable : carried_.registers()) {
            if (!is_changed_by_some(*variable, loops, dominators)) {
                registers.push_back(variable);
                continue;
            }
            variable->setMetadata(shared_variable, llvm::MDNode::get(context_, {}));
            for (llvm::User* user : variable->users())  // all work-items access it
                llvm::cast<llvm::Instruction>(user)->setMetadata(llvm::LLVMContext::MD_access_group, nullptr);
        }
        llvm::PromoteMemToReg(registers, dominators);
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

    const IdleLoops idle_;
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
    const FirstItem first_item_;
    const KernelRegions shared_;

    llvm::BasicBlock* return_ = nullptr;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> dispatch_;  // of each cut
};

}  // namespace

RegionStatistics form_work_item_loops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts,
                                      IdleLoops idle) {
    llvm::BasicBlock* body = kernel.prologue->getSingleSuccessor();
    auto* entry = llvm::BasicBlock::Create(body->getContext(), "region", kernel.function, body);
    llvm::BranchInst::Create(body, entry);
    kernel.prologue->getTerminator()->replaceSuccessorWith(body, entry);
    body->replacePhiUsesWith(kernel.prologue, entry);
    const RegionStatistics statistics = WorkItemLoops(kernel, uniformity, cuts, idle).run();
    for (unsigned i : {abi::local_memory, abi::scratch})
        kernel.function->addParamAttr(i, llvm::Attribute::NoAlias);
    return statistics;
}

}  // namespace polder::compiler::workgroup
