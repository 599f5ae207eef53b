// A mask that another block uses is extended with its sign where it is made, and phis of masks become phis of words. Where it is used, a word
// below zero is a lane that is active: blends, masked accesses and vmovmsk look only at the sign, so that LLVM removes this comparison. Operations
// that combine masks combine words, so that one block does not pack masks of words, either.
#include "mask_words.h"

#include <algorithm>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <map>

namespace polder::compiler {

namespace {

// The number of lanes of a mask; 0 for another type.
unsigned lanes_of(const llvm::Type* type) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector && vector->getElementType()->isIntegerTy(1) ? vector->getNumElements() : 0;
}

class MaskWords {
public:
    MaskWords(llvm::Function& function, unsigned register_bits) : function_(function), register_bits_(register_bits) {}

    void run() {
        llvm::SmallSetVector<llvm::Instruction*, 16> masks;
        for (llvm::Instruction& instruction : llvm::instructions(function_))
            if (lanes_of(instruction.getType()) > 1 && is_passed(instruction))
                masks.insert(&instruction);
        if (masks.empty())
            return;
        count_widths();
        masks.remove_if([&](const llvm::Instruction* mask) { return width_of(lanes_of(mask->getType())) == 0; });
        // What they are combined of is words, too.
        for (size_t i = 0; i < masks.size(); ++i)
            if (is_combination(*masks[i]))
                for (llvm::Value* part : masks[i]->operands())
                    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(part))
                        masks.insert(instruction);
        for (llvm::Instruction* mask : masks)
            if (auto* phi = llvm::dyn_cast<llvm::PHINode>(mask))
                words_[mask] =
                    llvm::PHINode::Create(word_type(*mask), phi->getNumIncomingValues(), "words", phi->getIterator());
        for (llvm::Instruction* mask : masks)
            words(mask);
        for (llvm::Instruction* mask : masks)
            if (auto* phi = llvm::dyn_cast<llvm::PHINode>(mask))
                for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
                    llvm::cast<llvm::PHINode>(words_[phi])
                        ->addIncoming(words(phi->getIncomingValue(i)), phi->getIncomingBlock(i));
        for (llvm::Instruction* mask : masks)
            use_words(*mask, masks.getArrayRef());
        for (llvm::Instruction* mask : masks)
            if (is_replaced(*mask)) {
                mask->replaceAllUsesWith(llvm::PoisonValue::get(mask->getType()));  // only others of these use it
                mask->eraseFromParent();
            }
    }

private:
    static bool is_combination(const llvm::Instruction& mask) {
        if (llvm::isa<llvm::FreezeInst>(mask) || mask.isBitwiseLogicOp())
            return true;
        // The condition of a select may be a single bit.
        return llvm::isa<llvm::SelectInst>(mask) && mask.getOperand(0)->getType() == mask.getType();
    }
    static bool is_replaced(const llvm::Instruction& mask) {
        return llvm::isa<llvm::PHINode>(mask) || is_combination(mask);
    }

    static bool is_passed(const llvm::Instruction& mask) {
        return llvm::isa<llvm::PHINode>(mask) || llvm::any_of(mask.users(), [&](const llvm::User* user) {
                   return llvm::isa<llvm::PHINode>(user) ||
                          llvm::cast<llvm::Instruction>(user)->getParent() != mask.getParent();
               });
    }

    // For each number of lanes, how many operations under a mask, and comparisons that make one, have values of which width.
    void count_widths() {
        const auto count = [&](const llvm::Type* values, const llvm::Type* mask) {
            if (const unsigned lanes = lanes_of(mask); lanes > 1 && values->isVectorTy())
                if (const unsigned bits = values->getScalarSizeInBits(); bits > 1)
                    ++widths_[lanes][bits];
        };
        for (const llvm::Instruction& instruction : llvm::instructions(function_)) {
            if (llvm::isa<llvm::CmpInst>(instruction))
                count(instruction.getOperand(0)->getType(), instruction.getType());
            else if (llvm::isa<llvm::SelectInst>(instruction))
                count(instruction.getType(), instruction.getOperand(0)->getType());
            else if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
                switch (call->getIntrinsicID()) {
                case llvm::Intrinsic::masked_load:
                case llvm::Intrinsic::masked_gather: count(call->getType(), call->getArgOperand(1)->getType()); break;
                case llvm::Intrinsic::masked_store:
                case llvm::Intrinsic::masked_scatter:
                    count(call->getArgOperand(0)->getType(), call->getArgOperand(2)->getType());
                    break;
                default: break;
                }
        }
    }

    // The width that most operations have; 0 where LLVM passes the mask in words of this width anyway.
    unsigned width_of(unsigned lanes) const {
        constexpr unsigned passed_bits = 128, word_bits_max = 64, registers_max = 2;
        const auto found = widths_.find(lanes);
        if (found == widths_.end())
            return 0;
        const auto most = std::ranges::max_element(found->second, {}, [](const auto& entry) { return entry.second; });
        const unsigned bits = most->first;
        const bool fits =
            llvm::isPowerOf2_32(bits) && bits <= word_bits_max && lanes * bits <= registers_max * register_bits_;
        return fits && lanes * bits > passed_bits ? bits : 0;
    }

    llvm::Type* word_type(const llvm::Value& mask) const {
        const unsigned lanes = lanes_of(mask.getType());
        return llvm::FixedVectorType::get(llvm::IntegerType::get(function_.getContext(), width_of(lanes)), lanes);
    }

    llvm::Value* words(llvm::Value* mask) {
        if (auto* constant = llvm::dyn_cast<llvm::Constant>(mask))
            return llvm::IRBuilder<>(function_.getContext()).CreateSExt(constant, word_type(*mask));
        if (const auto found = words_.find(mask); found != words_.end())
            return found->second;
        auto& made = llvm::cast<llvm::Instruction>(*mask);
        llvm::SmallVector<llvm::Value*, 3> parts;
        if (is_combination(made))
            for (llvm::Value* part : made.operands())
                parts.push_back(words(part));
        llvm::IRBuilder<> at(made.getParent(), *made.getInsertionPointAfterDef());
        return words_[mask] =
                   parts.empty() ? at.CreateSExt(mask, word_type(*mask), "words") : combined(at, made, parts);
    }

    static llvm::Value* combined(llvm::IRBuilder<>& at, const llvm::Instruction& mask,
                                 llvm::ArrayRef<llvm::Value*> parts) {
        if (llvm::isa<llvm::FreezeInst>(mask))
            return at.CreateFreeze(parts[0]);
        if (const auto* logic = llvm::dyn_cast<llvm::BinaryOperator>(&mask))
            return at.CreateBinOp(logic->getOpcode(), parts[0], parts[1]);
        // A select ignores poison in the part that it does not choose.
        const auto chosen = [&](llvm::Value* condition, llvm::Value* part) {
            const auto* constant = llvm::dyn_cast<llvm::Constant>(part);
            if (constant && constant->isNullValue())
                return part;
            return at.CreateAnd(condition, constant ? part : at.CreateFreeze(part));
        };
        llvm::Value* const yes = chosen(parts[0], parts[1]);
        return at.CreateOr(yes, chosen(at.CreateNot(parts[0]), parts[2]));
    }

    // All users of a mask that is replaced, and those of others in other blocks, compare the words.
    void use_words(llvm::Instruction& mask, llvm::ArrayRef<llvm::Instruction*> masks) {
        llvm::DenseMap<llvm::BasicBlock*, llvm::Value*> compared;
        llvm::Value* const words = words_[&mask];
        for (llvm::Use& use : llvm::make_early_inc_range(mask.uses())) {
            auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
            llvm::BasicBlock* const block = user->getParent();
            const bool is_own_block = block == mask.getParent();
            if ((is_replaced(*user) && llvm::is_contained(masks, user)) || user == words ||
                (is_own_block && !is_replaced(mask)))
                continue;
            llvm::Value*& active = compared[block];
            if (active == nullptr) {
                llvm::IRBuilder<> at(block,
                                     is_own_block ? *mask.getInsertionPointAfterDef() : block->getFirstInsertionPt());
                if (auto* made = llvm::dyn_cast<llvm::Instruction>(words);
                    made && is_own_block && !llvm::isa<llvm::PHINode>(made))
                    at.SetInsertPoint(made->getNextNode());
                active = at.CreateICmpSLT(words, llvm::Constant::getNullValue(words->getType()), "active");
            }
            use.set(active);
        }
    }

    llvm::Function& function_;
    const unsigned register_bits_;
    llvm::SmallVector<llvm::Instruction*> passed_;
    llvm::DenseMap<const llvm::Value*, llvm::Value*> words_;
    std::map<unsigned, std::map<unsigned, size_t>> widths_;
};

// LLVM compares structures of all lanes before it takes them apart, which makes one comparison of two. But then it takes bits apart, and for
// that it packs them into bytes. Words are moved as the structures would be.
void move_words(llvm::Function& function) {
    llvm::SmallVector<llvm::ShuffleVectorInst*> moves;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* move = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction);
            move && lanes_of(move->getType()) > 1 && llvm::isa<llvm::CmpInst>(move->getOperand(0)) &&
            llvm::isa<llvm::UndefValue>(move->getOperand(1)))
            moves.push_back(move);
    llvm::DenseMap<llvm::Value*, llvm::Value*> words;
    for (llvm::ShuffleVectorInst* move : moves) {
        auto* const compare = llvm::cast<llvm::CmpInst>(move->getOperand(0));
        const unsigned bits = compare->getOperand(0)->getType()->getScalarSizeInBits();
        if (bits < 8 || !llvm::isPowerOf2_32(bits))
            continue;
        llvm::Value*& its = words[compare];
        llvm::IRBuilder<> at(compare->getNextNode());
        if (its == nullptr)
            its = at.CreateSExt(compare, llvm::FixedVectorType::get(at.getIntNTy(bits), lanes_of(compare->getType())),
                                "words");
        at.SetInsertPoint(move);
        llvm::Value* const moved = at.CreateShuffleVector(its, move->getShuffleMask());
        move->replaceAllUsesWith(at.CreateICmpSLT(moved, llvm::Constant::getNullValue(moved->getType()), "active"));
        move->eraseFromParent();
    }
}

}  // namespace

void pass_masks_as_words(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || machine.getMCSubtargetInfo()->checkFeatures("+avx512vl"))
        return;
    move_words(function);
    const auto bits =
        machine.getTargetTransformInfo(function).getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector);
    MaskWords(function, static_cast<unsigned>(bits.getFixedValue())).run();
}

}  // namespace polder::compiler
