// A step begins with a branch (at the end of `begin_`) and ends where all of its paths meet again (`end_`). The blocks between them hold few instructions, all
// without effects but for one store on each path at most. They become a part of the first block, in the order of the paths:
// - each block has a condition under which it is reached: one of the edges that lead to it is taken;
// - phis become selects by these conditions;
// - all stores become one, of a chosen value at a chosen address.
// The selects are marked as unpredictable, so that the code generator makes no branches of them.
#include "merge_steps.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <optional>

namespace polder::compiler {
namespace {

using Phis = llvm::SmallPtrSet<const llvm::PHINode*, 4>;

constexpr size_t blocks_max = 8, instructions_max = 20, values_max = 64;

// The phis of the loop's header and the loads of which `value` is computed in one iteration. Stops at both.
void find_sources(llvm::Value& value, const llvm::Loop& loop, Phis& phis,
                  llvm::SmallPtrSetImpl<llvm::LoadInst*>& loads) {
    llvm::SmallPtrSet<llvm::Value*, 16> seen;
    llvm::SmallVector<llvm::Value*> todo{&value};
    while (!todo.empty() && seen.size() < values_max) {
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(todo.pop_back_val());
        if (instruction == nullptr || !loop.contains(instruction) || !seen.insert(instruction).second)
            continue;
        if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
            loads.insert(load);
            continue;
        }
        auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction);
        if (phi != nullptr && phi->getParent() == loop.getHeader())
            phis.insert(phi);
        else
            todo.append(instruction->op_begin(), instruction->op_end());
    }
}

// Values by the conditions of the edges or blocks that they come from.
class Choice {
public:
    void add(llvm::Value* value, llvm::Value* condition) { conditions_[value].push_back(condition); }

    // `otherwise`: where no condition holds; null where one of them always does.
    llvm::Value* choose(llvm::IRBuilder<>& at, llvm::Value* otherwise = nullptr) const {
        if (otherwise == nullptr)
            otherwise = llvm::max_element(conditions_, [](const auto& one, const auto& other) {
                            return one.second.size() < other.second.size();
                        })->first;
        llvm::Value* chosen = otherwise;
        for (const auto& [value, conditions] : conditions_) {
            if (value == otherwise)
                continue;
            chosen = at.CreateSelect(at.CreateOr(conditions), value, chosen);
            if (auto* const select = llvm::dyn_cast<llvm::SelectInst>(chosen))
                select->setMetadata(llvm::LLVMContext::MD_unpredictable,
                                    llvm::MDBuilder(at.getContext()).createUnpredictable());
        }
        return chosen;
    }

private:
    llvm::MapVector<llvm::Value*, llvm::SmallVector<llvm::Value*, 4>> conditions_;
};

class MergeStep {
public:
    MergeStep(const llvm::Loop& loop, llvm::BasicBlock& begin, llvm::BasicBlock& end)
        : loop_(loop), begin_(begin), end_(end) {}

    bool is_one() { return has_plain_blocks() && has_one_store_on_each_path() && advances_two_lists(); }

    void choose() {
        llvm::Instruction* const branch = begin_.getTerminator();
        llvm::IRBuilder<> at(branch);
        reached_[&begin_] = at.getTrue();
        for (llvm::BasicBlock* const block : blocks_) {
            llvm::SmallVector<llvm::Value*, 4> edges;
            for (llvm::BasicBlock* const before : llvm::predecessors(block))
                edges.push_back(edge(at, *before, *block));
            reached_[block] = at.CreateOr(edges);
            replace_phis(at, *block);
            move_instructions(*block);
        }
        replace_phis(at, end_);
        store(at);
        branch->eraseFromParent();
        llvm::BranchInst::Create(&end_, &begin_);
        for (llvm::BasicBlock* const block : blocks_)
            block->dropAllReferences();
        for (llvm::BasicBlock* const block : blocks_)
            block->eraseFromParent();
    }

private:
    // In an order in which each block follows those that lead to it.
    bool has_plain_blocks() {
        llvm::SmallVector<llvm::BasicBlock*> todo{&begin_};
        llvm::SmallDenseMap<llvm::BasicBlock*, size_t> missing;  // edges that have not been looked at
        size_t instructions = 0, to_end = 0;
        while (!todo.empty()) {
            llvm::BasicBlock* const from = todo.pop_back_val();
            for (llvm::BasicBlock* const next : llvm::successors(from)) {
                if (next == &end_) {
                    ++to_end;
                    continue;
                }
                if (next == loop_.getHeader() || next == &begin_ || !loop_.contains(next))
                    return false;
                const auto [edges, is_new] = missing.try_emplace(next, llvm::pred_size(next));
                if (is_new && (blocks_.size() + missing.size() > blocks_max || !is_plain(*next, instructions)))
                    return false;
                if (--edges->second == 0) {
                    blocks_.push_back(next);
                    todo.push_back(next);
                }
            }
        }
        return blocks_.size() == missing.size() && to_end == llvm::pred_size(&end_) && !end_.phis().empty();
    }

    static bool is_plain(const llvm::BasicBlock& block, size_t& instructions) {
        if (!llvm::isa<llvm::BranchInst>(block.getTerminator()))
            return false;
        return llvm::all_of(block.instructionsWithoutDebug(), [&](const llvm::Instruction& instruction) {
            if (instruction.isTerminator() || llvm::isa<llvm::PHINode>(instruction))
                return true;
            if (++instructions > instructions_max || llvm::isa<llvm::CallBase>(instruction))
                return false;
            if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
                return store->isSimple();
            return !instruction.mayReadOrWriteMemory() && llvm::isSafeToSpeculativelyExecute(&instruction);
        });
    }

    bool has_one_store_on_each_path() {
        struct Path {
            unsigned most = 0;
            bool always = false;
        };
        llvm::SmallDenseMap<const llvm::BasicBlock*, Path> paths{{&begin_, {}}};
        const auto follow = [&](llvm::BasicBlock& block) {
            Path path{0, true};
            for (const llvm::BasicBlock* const before : llvm::predecessors(&block)) {
                path.most = std::max(path.most, paths[before].most);
                path.always &= paths[before].always;
            }
            return path;
        };
        const llvm::StoreInst* first = nullptr;
        for (llvm::BasicBlock* const block : blocks_) {
            Path path = follow(*block);
            for (llvm::Instruction& instruction : *block)
                if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
                    first = first == nullptr ? store : first;
                    if (store->getValueOperand()->getType() != first->getValueOperand()->getType() ||
                        store->getPointerOperandType() != first->getPointerOperandType())
                        return false;
                    ++path.most;
                    path.always = true;
                }
            paths[block] = path;
        }
        const Path path = follow(end_);
        always_stores_ = path.always;
        return path.most <= 1;
    }

    // Whether a phi of the header is decided by the step: what it is in the next iteration is a phi of the step's end, or computed of one.
    [[nodiscard]] bool is_decided(const llvm::PHINode& phi) const {
        const llvm::BasicBlock* const latch = loop_.getLoopLatch();
        const llvm::Value* next = latch != nullptr ? phi.getIncomingValueForBlock(latch) : nullptr;
        while (llvm::isa_and_nonnull<llvm::CastInst>(next))
            next = llvm::cast<llvm::CastInst>(next)->getOperand(0);
        const auto* const decided = llvm::dyn_cast_or_null<llvm::PHINode>(next);
        return decided != nullptr && decided->getParent() == &end_;
    }

    bool advances_two_lists() {
        Phis phis;
        llvm::SmallPtrSet<llvm::LoadInst*, 4> loads;
        find_sources(*llvm::cast<llvm::BranchInst>(begin_.getTerminator())->getCondition(), loop_, phis, loads);
        llvm::SmallPtrSet<const llvm::PHINode*, 4> lists;
        for (llvm::LoadInst* const load : loads) {
            Phis places;
            llvm::SmallPtrSet<llvm::LoadInst*, 4> others;
            find_sources(*load->getPointerOperand(), loop_, places, others);
            llvm::SmallVector<const llvm::PHINode*> decided;
            llvm::copy_if(places, std::back_inserter(decided),
                          [&](const llvm::PHINode* phi) { return is_decided(*phi); });
            if (decided.size() == 1 && others.empty())
                lists.insert(decided.front());
        }
        return lists.size() >= 2;
    }

    llvm::Value* edge(llvm::IRBuilder<>& at, llvm::BasicBlock& from, llvm::BasicBlock& to) {
        auto* const branch = llvm::cast<llvm::BranchInst>(from.getTerminator());
        llvm::Value* const reached = reached_[&from];
        if (!branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1))
            return reached;
        llvm::Value* condition = branch->getCondition();
        if (branch->getSuccessor(0) != &to)
            condition = at.CreateNot(condition);
        // The condition may be poison where its block is not reached.
        return at.CreateLogicalAnd(reached, condition);
    }

    void replace_phis(llvm::IRBuilder<>& at, llvm::BasicBlock& block) {
        for (llvm::PHINode& phi : llvm::make_early_inc_range(block.phis())) {
            Choice choice;
            for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
                choice.add(phi.getIncomingValue(i), edge(at, *phi.getIncomingBlock(i), block));
            phi.replaceAllUsesWith(choice.choose(at));
            phi.eraseFromParent();
        }
    }

    // An instruction that another path has, too, is computed once.
    void move_instructions(llvm::BasicBlock& block) {
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
            if (instruction.isTerminator())
                continue;
            if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
                stores_.emplace_back(store, reached_[&block]);
                continue;
            }
            const auto same = llvm::find_if(
                moved_, [&](const llvm::Instruction* other) { return other->isIdenticalToWhenDefined(&instruction); });
            if (same != moved_.end()) {
                (*same)->andIRFlags(&instruction);
                instruction.replaceAllUsesWith(*same);
                instruction.eraseFromParent();
                continue;
            }
            instruction.dropUBImplyingAttrsAndMetadata();
            instruction.moveBefore(begin_.getTerminator()->getIterator());
            moved_.push_back(&instruction);
        }
    }

    void store(llvm::IRBuilder<>& at) {
        if (stores_.empty())
            return;
        llvm::StoreInst& first = *stores_.front().first;
        Choice values, places;
        llvm::Align align = first.getAlign();
        llvm::AAMDNodes tags = first.getAAMetadata();
        for (const auto& [store, reached] : stores_) {
            values.add(store->getValueOperand(), reached);
            places.add(store->getPointerOperand(), reached);
            align = std::min(align, store->getAlign());
            tags = tags.merge(store->getAAMetadata());
        }
        llvm::Value* nowhere = nullptr;
        if (!always_stores_) {
            llvm::IRBuilder<> entry(&*begin_.getParent()->getEntryBlock().getFirstInsertionPt());
            llvm::AllocaInst* const variable =
                entry.CreateAlloca(first.getValueOperand()->getType(), nullptr, "unused");
            variable->setAlignment(std::max(variable->getAlign(), align));
            nowhere = entry.CreatePointerBitCastOrAddrSpaceCast(variable, first.getPointerOperandType());
            tags = llvm::AAMDNodes();
        }
        llvm::Value* const value = values.choose(at);
        at.CreateAlignedStore(value, places.choose(at, nowhere), align)->setAAMetadata(tags);
    }

    const llvm::Loop& loop_;
    llvm::BasicBlock &begin_, &end_;
    llvm::SmallVector<llvm::BasicBlock*> blocks_;  // between both
    llvm::SmallDenseMap<const llvm::BasicBlock*, llvm::Value*> reached_;
    llvm::SmallVector<llvm::Instruction*> moved_;
    llvm::SmallVector<std::pair<llvm::StoreInst*, llvm::Value*>> stores_;
    bool always_stores_ = false;
};

// Changes the first step of the loop. Blocks of the loop may be unknown to the analyses afterwards.
bool choose_step_of(const llvm::Loop& loop, const llvm::PostDominatorTree& ends) {
    for (llvm::BasicBlock* const block : loop.blocks()) {
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        if (branch == nullptr || !branch->isConditional() || loop.isLoopExiting(block))
            continue;
        const auto* const node = ends.getNode(block);
        llvm::BasicBlock* const end = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
        if (end == nullptr || end == loop.getHeader() || !loop.contains(end))
            continue;
        if (MergeStep step(loop, *block, *end); step.is_one()) {
            step.choose();
            return true;
        }
    }
    return false;
}

// Changes one step of each innermost loop at most, so that the analyses, which are of the function as it was, hold for the loops that follow.
unsigned choose_steps(llvm::Function& function) {
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    std::optional<llvm::PostDominatorTree> ends;
    unsigned steps = 0;
    for (const llvm::Loop* const loop : loops.getLoopsInPreorder()) {
        if (!loop->isInnermost() || loop->getNumBlocks() < 3)
            continue;
        if (!ends)
            ends.emplace(function);
        steps += choose_step_of(*loop, *ends) ? 1 : 0;
    }
    return steps;
}

}  // namespace

unsigned choose_merge_steps(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    unsigned steps = 0;
    while (const unsigned more = choose_steps(function))
        steps += more;
    if (steps > 0) {
        analyses.invalidate(function, llvm::PreservedAnalyses::none());
        llvm::InstCombinePass().run(function, analyses);  // joins the conditions of paths
        analyses.invalidate(function, llvm::PreservedAnalyses::none());
    }
    return steps;
}

}  // namespace polder::compiler
