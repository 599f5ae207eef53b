// In a copy, the numbers and what is computed from one of them are constants. Indices of 32 bits without a sign have no known step, because they may wrap around:
// a copy is for work-items whose indices do not, too, so that they are numbers of 64 bits there.
#include "length_copies.h"

#include "guarded_loop.h"
#include "targets/host/workgroup/vectorizer/analysis/index_bases.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace polder::compiler::workgroup {

namespace {

// Emits the copies of one loop.
class Copies {
public:
    Copies(llvm::Loop& loop, llvm::LoopInfo& loops, llvm::DominatorTree& dominators)
        : loop_(loop), loops_(loops), dominators_(dominators) {}

    // Whether the loop has one entry and one exit behind its last block, and no value of it is used behind it.
    [[nodiscard]] bool is_simple() const {
        const llvm::BasicBlock* const exit = loop_.getExitBlock();
        return loop_.isLoopSimplifyForm() && exit != nullptr && exit->phis().empty() &&
               loop_.getExitingBlock() == loop_.getLoopLatch() && are_variables_own();
    }

    // Loads an argument before the loop. It may be loaded in a branch that no work-item takes, but the block of arguments is always there.
    void load_before(llvm::Value& root) {
        auto* const load = llvm::dyn_cast<llvm::LoadInst>(&root);
        if (load == nullptr || loop_.isLoopInvariant(load))
            return;
        llvm::Instruction* const before = loop_.getLoopPreheader()->getTerminator();
        bool is_changed = false;
        loop_.makeLoopInvariant(load->getPointerOperand(), is_changed, before);
        load->moveBefore(before->getIterator());
        load->dropUBImplyingAttrsAndMetadata();
    }

    void emit_copy(llvm::ArrayRef<KnownNumber> numbers) {
        llvm::BasicBlock* const before = loop_.getLoopPreheader();
        llvm::BasicBlock* const preheader =
            llvm::SplitBlock(before, before->getTerminator(), &dominators_, &loops_, nullptr, "items.any_length");
        llvm::ValueToValueMapTy copies;
        for (llvm::AllocaInst* variable : variables()) {  // the vectorizer expects each in one loop
            llvm::Instruction* const own = variable->clone();
            own->insertBefore(variable->getIterator());
            copies[variable] = own;
        }
        for (const llvm::BasicBlock* block : loop_.blocks())
            for (const llvm::Instruction& instruction : *block)
                for (llvm::Value* operand : instruction.operands())
                    if (llvm::Constant* const known = folded(*operand, numbers))
                        copies[operand] = known;
        llvm::Loop* const copy = clone_into(*before, *preheader, copies);
        FoldingBuilder at(before, before->getTerminator()->getIterator(),
                          llvm::InstSimplifyFolder(before->getDataLayout()));
        llvm::Value* condition = at.getTrue();
        for (const auto& [root, value] : numbers)
            condition = at.CreateAnd(condition, at.CreateICmpEQ(at.CreateFreeze(root),
                                                                llvm::ConstantInt::getSigned(root->getType(), value)));
        condition = at.CreateAnd(condition, widen_places(*copy, at));
        at.CreateCondBr(condition, copy->getLoopPreheader(), preheader);
        before->getTerminator()->eraseFromParent();
        llvm::BasicBlock* const exit = loop_.getExitBlock();
        llvm::BasicBlock* const from = dominators_.getNode(exit)->getIDom()->getBlock();
        dominators_.changeImmediateDominator(exit, dominators_.findNearestCommonDominator(from, before));
    }

private:
    // The private variables that the loop uses.
    [[nodiscard]] llvm::SmallSetVector<llvm::AllocaInst*, 4> variables() const {
        llvm::SmallSetVector<llvm::AllocaInst*, 4> found;
        for (const llvm::BasicBlock* block : loop_.blocks())
            for (const llvm::Instruction& instruction : *block)
                for (llvm::Value* operand : instruction.operands())
                    if (auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(operand);
                        variable != nullptr && !variable->hasMetadata(shared_variable))
                        found.insert(variable);
        return found;
    }

    [[nodiscard]] bool are_variables_own() const {
        return llvm::all_of(variables(), [&](const llvm::AllocaInst* variable) {
            return llvm::all_of(variable->users(), [&](const llvm::User* user) {
                const auto* const instruction = llvm::cast<llvm::Instruction>(user);
                return loop_.contains(instruction) || instruction->isLifetimeStartOrEnd();
            });
        });
    }

    // The functions with which reciprocals of divisors are computed (work_items/uniform_division).
    static bool is_of_reciprocal(const llvm::IntrinsicInst& call) {
        switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::umax:
        case llvm::Intrinsic::umin:
        case llvm::Intrinsic::ctlz:
        case llvm::Intrinsic::abs: return true;
        default: return false;
        }
    }

    // The constant that an integer outside of the loop is where `root` is `length`; null for another value.
    static llvm::Constant* folded(llvm::Value& value, llvm::Value& root, int64_t length, unsigned depth) {
        const auto* const frozen_root = llvm::dyn_cast<llvm::FreezeInst>(&root);
        if (&value == &root || (frozen_root != nullptr && &value == frozen_root->getOperand(0)))
            return llvm::ConstantInt::getSigned(value.getType(), length);
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (depth == 0 || instruction == nullptr || !instruction->getType()->isIntegerTy())
            return nullptr;
        if (llvm::isa<llvm::FreezeInst>(instruction))
            return folded(*instruction->getOperand(0), root, length, depth - 1);
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction);
        if (call != nullptr ? !is_of_reciprocal(*call)
                            : !llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::ICmpInst>(instruction))
            return nullptr;
        llvm::SmallVector<llvm::Constant*, 2> operands;
        for (const llvm::Use& use : call != nullptr ? call->args() : instruction->operands()) {
            auto* known = llvm::dyn_cast<llvm::ConstantInt>(use.get());
            operands.push_back(known != nullptr ? known : folded(*use.get(), root, length, depth - 1));
            if (operands.back() == nullptr)
                return nullptr;
        }
        const llvm::DataLayout& layout = instruction->getDataLayout();
        if (call != nullptr)
            return llvm::ConstantFoldCall(call, call->getCalledFunction(), operands);
        if (const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(instruction))
            return llvm::ConstantFoldCompareInstOperands(compare->getPredicate(), operands[0], operands[1], layout);
        return llvm::ConstantFoldInstOperands(instruction, operands, layout);
    }

    [[nodiscard]] llvm::Constant* folded(llvm::Value& value, llvm::ArrayRef<KnownNumber> numbers) const {
        constexpr unsigned depth_max = 16;  // a reciprocal has 14 steps
        if (!value.getType()->isIntegerTy() || !loop_.isLoopInvariant(&value))
            return nullptr;
        for (const auto& [root, number] : numbers)
            if (llvm::Constant* const known = folded(value, *root, number, depth_max))
                return known;
        return nullptr;
    }

    // The copy behind `before`, with `copies` in place of what they are copies of.
    llvm::Loop* clone_into(llvm::BasicBlock& before, llvm::BasicBlock& preheader, llvm::ValueToValueMapTy& copies) {
        llvm::SmallVector<llvm::BasicBlock*, 8> blocks;
        llvm::Loop* const copy =
            llvm::cloneLoopWithPreheader(&preheader, &before, &loop_, copies, ".length", &loops_, &dominators_, blocks);
        llvm::remapInstructionsInBlocks(blocks, copies);
        for (llvm::BasicBlock* block : blocks)
            for (llvm::Instruction& instruction : *block)
                if (instruction.getOpcode() == llvm::Instruction::Mul &&
                    llvm::isa<llvm::Constant>(instruction.getOperand(0)))
                    llvm::cast<llvm::BinaryOperator>(instruction).swapOperands();
        copy->setLoopID(copy_of(*loop_.getLoopID()));
        return copy;
    }

    // Places of 32 bits without a sign may wrap around, so that the step of their extensions would be unknown. Where none does, which the result says of
    // all work-items, they are numbers of 64 bits: the first work-item's, plus the step times the counter, plus a constant.
    static llvm::Value* widen_places(llvm::Loop& copy, FoldingBuilder& before) {
        struct Places {
            int64_t step = 0, least = 0, most = 0;  // constants beyond the place
            llvm::SmallVector<std::pair<llvm::ZExtInst*, int64_t>, 4> extensions;
        };
        llvm::Value* condition = before.getTrue();
        const GuardedLoop counted(copy);
        if (counted.count() == nullptr || !counted.counter()->getType()->isIntegerTy(64))
            return condition;
        llvm::MapVector<llvm::Value*, Places> places;
        for (llvm::BasicBlock* block : copy.blocks())
            for (llvm::Instruction& instruction : *block) {
                auto* const extension = llvm::dyn_cast<llvm::ZExtInst>(&instruction);
                if (extension == nullptr || !extension->getOperand(0)->getType()->isIntegerTy(32) ||
                    !extension->getType()->isIntegerTy(64))
                    continue;
                const OffsetBase place = without_offset(*extension->getOperand(0));
                const std::optional<int64_t> step = counted.step_of(*place.root);
                if (!step || *step <= 1)
                    continue;
                Places& own = places[place.root];
                own.step = *step;
                own.least = std::min(own.least, place.offset);
                own.most = std::max(own.most, place.offset);
                own.extensions.emplace_back(extension, place.offset);
            }
        llvm::IRBuilder<> at(&*copy.getHeader()->getFirstInsertionPt());
        for (const auto& [place, own] : places) {
            constexpr int64_t end = int64_t{1} << 31;
            llvm::Value* const zero = llvm::ConstantInt::get(counted.counter()->getType(), 0);
            llvm::Value* const first =
                before.CreateZExt(frozen(before, *counted.at_counter(before, *place, zero)), before.getInt64Ty());
            llvm::Value* const length =
                before.CreateMul(counted.count(), before.getInt64(static_cast<uint64_t>(own.step)));
            llvm::Value* const last = before.CreateAdd(first, length);
            condition = before.CreateAnd(
                condition, before.CreateICmpULE(last, before.getInt64(static_cast<uint64_t>(end - own.most))));
            condition = before.CreateAnd(
                condition, before.CreateICmpUGE(first, before.getInt64(static_cast<uint64_t>(-own.least))));
            llvm::Value* const steps = at.CreateNUWMul(counted.counter(), at.getInt64(static_cast<uint64_t>(own.step)));
            llvm::Value* const wide = at.CreateAdd(steps, first, "place", /*HasNUW=*/true, /*HasNSW=*/true);
            for (const auto& [extension, offset] : own.extensions) {
                llvm::IRBuilder<> there(extension);
                extension->replaceAllUsesWith(there.CreateAdd(wide,
                                                              llvm::ConstantInt::getSigned(wide->getType(), offset), "",
                                                              /*HasNUW=*/false, /*HasNSW=*/true));
            }
        }
        return condition;
    }

    static llvm::MDNode* copy_of(const llvm::MDNode& id) {
        llvm::SmallVector<llvm::Metadata*, 8> properties{nullptr};
        llvm::append_range(properties, llvm::drop_begin(id.operands()));
        llvm::MDNode* const copy = llvm::MDNode::getDistinct(id.getContext(), properties);
        copy->replaceOperandWith(0, copy);
        return copy;
    }

    llvm::Loop& loop_;
    llvm::LoopInfo& loops_;
    llvm::DominatorTree& dominators_;
};

}  // namespace

bool copy_for_numbers(llvm::Loop& loop, llvm::ArrayRef<KnownNumbers> copies, llvm::LoopInfo& loops,
                      llvm::DominatorTree& dominators) {
    Copies of_loop(loop, loops, dominators);
    if (!of_loop.is_simple())
        return false;
    for (const KnownNumbers& numbers : copies)
        for (const KnownNumber& number : numbers)
            of_loop.load_before(*number.root);
    for (const KnownNumbers& numbers : copies)
        of_loop.emit_copy(numbers);
    return true;
}

}  // namespace polder::compiler::workgroup
