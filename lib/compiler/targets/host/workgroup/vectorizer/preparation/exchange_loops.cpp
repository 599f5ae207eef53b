// A loop is recognised by its exchange: the address is the same in all iterations, the expected value is the newest one that this loop has seen
// there, the next iteration begins only after a failure, and nothing else in the loop writes or is volatile. Its blocks are copied into a function
// that returns the one value which is used behind the loop.
#include "exchange_loops.h"

#include "plain_operations.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/work_items/local_atomics.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <utility>

namespace polder::compiler::workgroup {

namespace {

namespace patterns = llvm::PatternMatch;

const llvm::Value* without_casts(const llvm::Value* value) {
    while (const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value))
        value = cast->getOperand(0);
    return value;
}

class ExchangeLoop {
public:
    ExchangeLoop(llvm::Loop& loop, const llvm::DominatorTree& dominators) : loop_(loop), dominators_(dominators) {}

    // Whether the loop has one entry, one exit and one exchange, and no iteration waits.
    bool is_recognised() {
        return loop_.isInnermost() && loop_.isLoopSimplifyForm() && loop_.getUniqueExitBlock() != nullptr &&
               find_exchange() && expects_newest_value() && repeats_only_failures() && needs_no_private_variable();
    }

    // The call, in place of the loop; nothing when code behind the loop uses several values.
    llvm::CallInst* call() {
        llvm::BasicBlock* const exit = loop_.getUniqueExitBlock();
        llvm::PHINode* result = nullptr;
        for (llvm::PHINode& phi : llvm::make_early_inc_range(exit->phis())) {
            if (phi.use_empty())
                phi.eraseFromParent();
            else if (std::exchange(result, &phi) != nullptr)
                return nullptr;
        }
        llvm::Function& function = make_function(result);
        llvm::BasicBlock* const before = loop_.getLoopPreheader();
        llvm::IRBuilder<> at(before->getTerminator());
        llvm::CallInst* const call = at.CreateCall(&function, inputs_.getArrayRef());
        if (result != nullptr) {
            result->replaceAllUsesWith(call);
            result->eraseFromParent();
        }
        before->getTerminator()->replaceSuccessorWith(loop_.getHeader(), exit);
        llvm::DeleteDeadBlocks(llvm::to_vector(loop_.blocks()));
        return call;
    }

private:
    // Nothing else in the loop may write, and only the exchanged number may be volatile: a loop that polls another one waits.
    bool find_exchange() {
        llvm::SmallVector<const llvm::LoadInst*> loads;
        for (llvm::BasicBlock* block : loop_.blocks())
            for (llvm::Instruction& instruction : *block) {
                if (auto* one = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
                    if (std::exchange(exchange_, one) != nullptr)
                        return false;
                } else if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
                    if (!load->isUnordered())
                        loads.push_back(load);
                } else if (instruction.mayHaveSideEffects() || llvm::isa<llvm::AllocaInst>(instruction) ||
                           (llvm::isa<llvm::CallBase>(instruction) && instruction.mayReadOrWriteMemory())) {
                    return false;
                }
            }
        return exchange_ != nullptr && loop_.isLoopInvariant(exchange_->getPointerOperand()) &&
               llvm::all_of(loads, [&](const llvm::LoadInst* load) { return is_load_of_place(load); });
    }

    bool is_load_of_place(const llvm::Value* value) const {
        const auto* const load = llvm::dyn_cast<llvm::LoadInst>(value);
        return load != nullptr && loop_.contains(load) &&
               load->getPointerOperand()->stripPointerCasts() == exchange_->getPointerOperand()->stripPointerCasts();
    }

    bool is_old_value(const llvm::Value* value) const {
        return patterns::match(value, patterns::m_ExtractValue<0>(patterns::m_Specific(exchange_)));
    }

    // The expected value was loaded in this iteration, or in the one before, or found by its exchange.
    bool expects_newest_value() const {
        const llvm::Value* const expected = without_casts(exchange_->getCompareOperand());
        if (is_load_of_place(expected))
            return true;
        const auto* const phi = llvm::dyn_cast<llvm::PHINode>(expected);
        if (phi == nullptr || phi->getParent() != loop_.getHeader())
            return false;
        const llvm::Value* const next = without_casts(phi->getIncomingValueForBlock(loop_.getLoopLatch()));
        return is_load_of_place(next) || is_old_value(next);
    }

    // Whether the exchange has failed where `condition` has the value `value`.
    bool has_failed(const llvm::Value& condition, bool value, unsigned depth = 0) const {
        constexpr unsigned depth_max = 4;
        if (depth > depth_max)
            return false;
        if (patterns::match(&condition, patterns::m_ExtractValue<1>(patterns::m_Specific(exchange_))))
            return !value;
        if (const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&condition); compare && compare->isEquality()) {
            const auto is_exchanged = [&](unsigned old, unsigned expected) {
                return is_old_value(compare->getOperand(old)) &&
                       compare->getOperand(expected) == exchange_->getCompareOperand();
            };
            return (is_exchanged(0, 1) || is_exchanged(1, 0)) &&
                   value == (compare->getPredicate() == llvm::ICmpInst::ICMP_NE);
        }
        const llvm::Value* left = nullptr;
        const llvm::Value* right = nullptr;
        if (patterns::match(&condition, patterns::m_Not(patterns::m_Value(left))))
            return has_failed(*left, !value, depth + 1);
        if (value
                ? patterns::match(&condition, patterns::m_LogicalAnd(patterns::m_Value(left), patterns::m_Value(right)))
                : patterns::match(&condition, patterns::m_LogicalOr(patterns::m_Value(left), patterns::m_Value(right))))
            return has_failed(*left, value, depth + 1) || has_failed(*right, value, depth + 1);
        return false;
    }

    // Whether the next iteration begins only after an exchange that failed.
    bool repeats_only_failures() const {
        return llvm::any_of(loop_.blocks(), [&](const llvm::BasicBlock* block) {
            const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
            if (branch == nullptr || !branch->isConditional() || !dominators_.dominates(block, loop_.getLoopLatch()))
                return false;
            const bool stays_if_true = loop_.contains(branch->getSuccessor(0));
            return stays_if_true != loop_.contains(branch->getSuccessor(1)) &&
                   has_failed(*branch->getCondition(), stays_if_true);
        });
    }

    // Finds the values from outside. Each lane has its own copy of a private variable, which a function would not find.
    bool needs_no_private_variable() {
        for (llvm::BasicBlock* block : loop_.blocks())
            for (llvm::Instruction& instruction : *block)
                inputs_.insert_range(instruction.operand_values());
        for (llvm::PHINode& phi : loop_.getUniqueExitBlock()->phis())
            inputs_.insert_range(phi.incoming_values());
        inputs_.remove_if([&](llvm::Value* value) {
            const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
            return instruction ? loop_.contains(instruction) : !llvm::isa<llvm::Argument>(value);
        });
        return llvm::all_of(inputs_, [](llvm::Value* input) {
            return is_scalar(*input->getType()) && !(input->getType()->isPointerTy() &&
                                                     llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(input, 0)));
        });
    }

    llvm::Function& make_function(const llvm::PHINode* result) {
        llvm::Function& caller = *loop_.getHeader()->getParent();
        llvm::SmallVector<llvm::Type*> types;
        for (const llvm::Value* input : inputs_)
            types.push_back(input->getType());
        llvm::Type* const type = result ? result->getType() : llvm::Type::getVoidTy(caller.getContext());
        llvm::Function& made = make_exchange_function(caller, *llvm::FunctionType::get(type, types, false));
        llvm::ValueToValueMapTy copies;
        for (const auto [input, parameter] : llvm::zip(inputs_, made.args()))
            copies[input] = &parameter;
        auto* const entry = llvm::BasicBlock::Create(caller.getContext(), "", &made);
        copies[loop_.getLoopPreheader()] = entry;
        llvm::SmallVector<llvm::BasicBlock*> blocks;
        for (const llvm::BasicBlock* block : loop_.blocks()) {
            blocks.push_back(llvm::CloneBasicBlock(block, copies, "", &made));
            copies[block] = blocks.back();
        }
        auto* const end = llvm::BasicBlock::Create(caller.getContext(), "", &made);
        copies[loop_.getUniqueExitBlock()] = end;
        llvm::PHINode* returned = nullptr;
        if (result != nullptr) {
            returned = llvm::cast<llvm::PHINode>(result->clone());
            returned->insertInto(end, end->end());
        }
        llvm::ReturnInst::Create(caller.getContext(), returned, end);
        llvm::BranchInst::Create(llvm::cast<llvm::BasicBlock>(copies[loop_.getHeader()]), entry);
        blocks.push_back(end);
        llvm::remapInstructionsInBlocks(blocks, copies);
        for (llvm::Instruction& instruction : llvm::instructions(made))
            forget_metadata(instruction);
        replace_local_atomics(made);
        return made;
    }

    llvm::Loop& loop_;
    const llvm::DominatorTree& dominators_;
    llvm::AtomicCmpXchgInst* exchange_ = nullptr;
    llvm::SmallSetVector<llvm::Value*, 8> inputs_;
};

bool is_in_work_item_loop(const llvm::Loop& loop) {
    for (const llvm::Loop* around = loop.getParentLoop(); around != nullptr; around = around->getParentLoop())
        if (llvm::findOptionMDForLoop(around, work_item_loop_tag) != nullptr)
            return true;
    return false;
}

bool call_one_loop(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        ExchangeLoop one(*loop, dominators);
        if (is_in_work_item_loop(*loop) && one.is_recognised() && one.call() != nullptr)
            return true;
    }
    return false;
}

// Numbers leave a loop, but not both members of an exchange's result as one value.
void take_results_apart(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (llvm::isa<llvm::AtomicCmpXchgInst>(instruction))
            for (llvm::User* user : llvm::make_early_inc_range(instruction.users()))
                if (auto* member = llvm::dyn_cast<llvm::ExtractValueInst>(user))
                    member->moveAfter(&instruction);
}

}  // namespace

void call_exchanges(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    if (llvm::none_of(llvm::instructions(function),
                      [](const llvm::Instruction& each) { return llvm::isa<llvm::AtomicCmpXchgInst>(each); }))
        return;
    take_results_apart(function);
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::LoopSimplifyPass());
    passes.addPass(llvm::LCSSAPass());
    passes.run(function, analyses);
    while (call_one_loop(function)) {
    }
    make_exchanges_plain(function);
    analyses.clear(function, function.getName());
}

}  // namespace polder::compiler::workgroup
