// The integer is found from the place: through the operations of its computation to the conversion of an integer that neither was loaded nor is the same in
// the whole loop, as sizes are. Constants that are added on the way are added to it, too. Where there are several such integers, none is expected.
#include "expected_places.h"

#include <cmath>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <optional>

namespace polder::compiler {

namespace {

// The integer, and what is added to it.
struct Beginning {
    llvm::Value* integer = nullptr;
    double added = 0;
};

class Beginnings {
public:
    explicit Beginnings(const llvm::Loop* loop) : loop_(loop) {}

    std::optional<Beginning> of(const llvm::Instruction& conversion) {
        follow(conversion.getOperand(0), 0, 0);
        return is_clear_ && steps_left_ > 0 && found_.integer ? std::optional(found_) : std::nullopt;
    }

private:
    void follow(llvm::Value* value, unsigned lane, double added) {
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (instruction == nullptr || steps_left_ == 0)
            return;
        --steps_left_;
        using How = llvm::Instruction;
        switch (instruction->getOpcode()) {
        case How::ExtractElement:
            if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(instruction->getOperand(1)))
                follow(instruction->getOperand(0), static_cast<unsigned>(number->getZExtValue()), added);
            return;
        case How::InsertElement:
        case How::ShuffleVector:
            if (llvm::Value* const element = llvm::findScalarElement(instruction, lane))
                follow(element, 0, added);
            return;
        case How::SIToFP:
        case How::UIToFP: begin_with(instruction->getOperand(0), lane, added); return;
        case How::FAdd:
        case How::FSub: return follow_sum(*instruction, lane, added);
        case How::Select: return follow_all(*instruction, 1, lane, added);
        case How::FMul:
        case How::FDiv:
        case How::FNeg:
        case How::Freeze: return follow_all(*instruction, 0, lane, added);
        case How::Call:
            if (llvm::isa<llvm::IntrinsicInst>(instruction) && !instruction->mayReadOrWriteMemory())
                follow_all(*instruction, 0, lane, added);
            return;
        default: return;
        }
    }
    void follow_all(const llvm::Instruction& instruction, unsigned begin, unsigned lane, double added) {
        for (unsigned operand = begin; operand < instruction.getNumOperands(); ++operand)
            follow(instruction.getOperand(operand), lane, added);
    }
    void follow_sum(const llvm::Instruction& sum, unsigned lane, double added) {
        const bool is_difference = sum.getOpcode() == llvm::Instruction::FSub;
        for (const unsigned operand : {0U, 1U})
            if (const auto summand = constant(sum.getOperand(operand)); summand && !(is_difference && operand == 0))
                return follow(sum.getOperand(1 - operand), lane, is_difference ? added - *summand : added + *summand);
        follow_all(sum, 0, lane, added);
    }
    static std::optional<double> constant(llvm::Value* value) {
        const auto* all = llvm::dyn_cast<llvm::Constant>(value);
        if (all && all->getType()->isVectorTy())
            all = all->getSplatValue();
        const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(all);
        if (number == nullptr || !number->getType()->isFloatTy() || !number->getValueAPF().isFinite())
            return std::nullopt;
        return static_cast<double>(number->getValueAPF().convertToFloat());
    }
    // Sizes of images are loaded, and those of the launch as well.
    static bool is_loaded(llvm::Value* integer) {
        while (auto* const cast = llvm::dyn_cast<llvm::CastInst>(integer))
            integer = cast->getOperand(0);
        return !llvm::isa<llvm::Instruction>(integer) || llvm::isa<llvm::LoadInst>(integer);
    }
    void begin_with(llvm::Value* integer, unsigned lane, double added) {
        if (integer->getType()->isVectorTy())
            integer = llvm::findScalarElement(integer, lane);
        if (integer == nullptr || is_loaded(integer) || (loop_ && loop_->isLoopInvariant(integer)))
            return;
        is_clear_ &= found_.integer == nullptr || found_.integer == integer;
        if (found_.integer == nullptr)
            found_ = {integer, added};
    }

    const llvm::Loop* const loop_;
    unsigned steps_left_ = 48;
    bool is_clear_ = true;
    Beginning found_;
};

// Whether a load's address is computed from the value by few operations.
bool is_for_address(const llvm::Instruction& value) {
    constexpr size_t operations_max = 48;
    llvm::SmallSetVector<const llvm::Instruction*, 16> found;
    found.insert(&value);
    for (size_t next = 0; next < found.size() && found.size() <= operations_max; ++next)
        for (const llvm::User* user : found[next]->users()) {
            if (llvm::isa<llvm::LoadInst>(user))
                return true;
            if (llvm::isa<llvm::CastInst, llvm::BinaryOperator, llvm::GetElementPtrInst, llvm::PHINode,
                          llvm::FreezeInst, llvm::SelectInst>(user) &&
                !user->getType()->isVectorTy() && !user->getType()->isFloatingPointTy())
                found.insert(llvm::cast<llvm::Instruction>(user));
        }
    return false;
}

void expect(llvm::Instruction& conversion, const Beginning& beginning, llvm::LoopInfo& loops) {
    constexpr uint32_t likely = 1'000;
    llvm::IRBuilder<> builder(conversion.getNextNode());
    llvm::Value* const place = builder.CreateFreeze(&conversion);
    llvm::Value* const expected = builder.CreateFreeze(
        builder.CreateAdd(builder.CreateZExtOrTrunc(beginning.integer, place->getType()),
                          builder.getInt32(static_cast<uint32_t>(static_cast<int32_t>(std::floor(beginning.added))))));
    llvm::Value* const differs = builder.CreateICmpNE(place, expected);
    llvm::BasicBlock* const before = builder.GetInsertBlock();
    llvm::Instruction* const computed = llvm::SplitBlockAndInsertIfThen(
        differs, builder.GetInsertPoint(), /*Unreachable=*/false,
        llvm::MDBuilder(conversion.getContext()).createBranchWeights(1, likely), /*DTU=*/nullptr, &loops);
    llvm::BasicBlock* const behind = computed->getSuccessor(0);
    builder.SetInsertPoint(behind, behind->begin());
    llvm::PHINode* const result = builder.CreatePHI(place->getType(), 2, "place");
    conversion.replaceUsesWithIf(result, [&](const llvm::Use& use) { return use.getUser() != place; });
    result->addIncoming(expected, before);
    result->addIncoming(place, computed->getParent());
}

}  // namespace

void expect_places(llvm::Function& function) {
    constexpr double added_max = 1 << 20;
    llvm::SmallVector<llvm::Instruction*> places;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (llvm::isa<llvm::FPToSIInst, llvm::FPToUIInst>(instruction) && instruction.getType()->isIntegerTy(32) &&
            is_for_address(instruction))
            places.push_back(&instruction);
    if (places.empty())
        return;
    const llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Instruction* place : places) {
        const llvm::Loop* const loop = loops.getLoopFor(place->getParent());
        if (loop ? loop->isInnermost() : loops.empty())
            continue;
        if (const auto beginning = Beginnings(loop).of(*place); beginning && std::fabs(beginning->added) <= added_max)
            expect(*place, *beginning, loops);
    }
}

}  // namespace polder::compiler
