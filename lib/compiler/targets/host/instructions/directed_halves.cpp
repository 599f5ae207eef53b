// Found from its last instruction, the step. A double is rounded twice in the same direction, which is rounding once, because every half is a float.
#include "directed_halves.h"

#include "register_parts.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>
#include <optional>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

// Numbered as in the instructions.
enum class Direction : uint8_t { down = 1, up = 2, to_zero = 3 };

// The last instruction: `bits` of a half plus or minus 1 where `condition` is true.
struct Step {
    llvm::Value *half = nullptr, *condition = nullptr;
    Direction direction = Direction::up;
};

std::optional<Step> step_of(llvm::Value* bits, llvm::Value* change, bool is_added) {
    Step step;
    if (!match(bits, m_BitCast(m_Value(step.half))) || !step.half->getType()->getScalarType()->isHalfTy())
        return std::nullopt;
    const auto size = m_c_Or(m_AShr(m_Specific(bits), m_SpecificInt(15)), m_One());
    if (match(change, m_Select(m_Value(step.condition), size, m_Zero())))
        step.direction = is_added ? Direction::up : Direction::down;
    else if (is_added && match(change, m_SExt(m_Value(step.condition))))
        step.direction = Direction::to_zero;
    else
        return std::nullopt;
    return step;
}

std::optional<Step> step_of(llvm::Instruction& instruction) {
    const unsigned opcode = instruction.getOpcode();
    if (opcode != llvm::Instruction::Add && opcode != llvm::Instruction::Sub)
        return std::nullopt;
    const bool is_added = opcode == llvm::Instruction::Add;
    llvm::Value *const left = instruction.getOperand(0), *const right = instruction.getOperand(1);
    const auto step = step_of(left, right, is_added);
    return step || !is_added ? step : step_of(right, left, true);
}

struct Comparison {
    llvm::Value *smaller = nullptr, *larger = nullptr;
};

Comparison comparison_of(llvm::Value* condition) {
    Comparison found;
    if (!match(condition, m_SpecificFCmp(llvm::CmpInst::FCMP_OLT, m_Value(found.smaller), m_Value(found.larger))) &&
        !match(condition, m_SpecificFCmp(llvm::CmpInst::FCMP_OGT, m_Value(found.larger), m_Value(found.smaller))))
        return {};
    return found;
}

// Whether `half` is a number of this type that was rounded to the nearest half, maybe to a float before.
bool is_near(llvm::Value* half, llvm::Value* x) {
    return match(half, m_FPTrunc(m_Specific(x))) || match(half, m_FPTrunc(m_FPTrunc(m_Specific(x))));
}

// The number, of floats or doubles, that the half is rounded from in the step's direction; else null.
llvm::Value* number_before(const Step& step) {
    const Comparison comparison = comparison_of(step.condition);
    if (comparison.smaller == nullptr)
        return nullptr;
    llvm::Value* x = step.direction == Direction::up ? comparison.larger : comparison.smaller;
    llvm::Value* const back = step.direction == Direction::up ? comparison.smaller : comparison.larger;
    const auto half = m_Specific(step.half);
    const bool is_compared =
        step.direction == Direction::to_zero
            ? match(x, m_FAbs(m_Value(x))) && (match(back, m_FAbs(m_FPExt(half))) || match(back, m_FPExt(m_FAbs(half))))
            : match(back, m_FPExt(half));
    return is_compared && is_near(step.half, x) ? x : nullptr;
}

// Vectors whose parts of one register have the instructions.
bool has_instructions(const llvm::Type& type) {
    const uint64_t needed_bits = type.getScalarType()->isDoubleTy() ? 512 : 256;
    return fills_registers(type) && type.getPrimitiveSizeInBits().getFixedValue() >= needed_bits;
}

llvm::Value* bits_of_half(llvm::IRBuilder<>& at, llvm::Value& x, Direction direction) {
    llvm::Value* const mode = at.getInt32(static_cast<uint32_t>(direction));
    llvm::Value* floats = &x;
    if (x.getType()->getScalarType()->isDoubleTy()) {
        const uint32_t without_exceptions = 8;
        llvm::Type* const type = x.getType()->getWithNewType(at.getFloatTy());
        floats = at.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_cvtpd2ps_512,
                                    {&x, llvm::PoisonValue::get(type), mask_of_all(at, *type),
                                     at.getInt32(static_cast<uint32_t>(direction) | without_exceptions)});
    }
    if (floats->getType()->getPrimitiveSizeInBits() == 256)
        return at.CreateIntrinsic(llvm::Intrinsic::x86_vcvtps2ph_256, {floats, mode});
    llvm::Type* const words = floats->getType()->getWithNewType(at.getInt16Ty());
    return at.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_vcvtps2ph_512,
                              {floats, mode, llvm::PoisonValue::get(words), mask_of_all(at, *words)});
}

}  // namespace

void convert_to_directed_halves(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || !machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl"))
        return;
    llvm::SmallVector<llvm::Instruction*> replaced;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        const auto step = step_of(instruction);
        llvm::Value* const x = step ? number_before(*step) : nullptr;
        if (x == nullptr || !has_instructions(*x->getType()))
            continue;
        llvm::IRBuilder<> at(&instruction);
        instruction.replaceAllUsesWith(
            in_registers(at, {x}, [&](auto operands) { return bits_of_half(at, *operands[0], step->direction); }));
        replaced.push_back(&instruction);
    }
    for (llvm::Instruction* const instruction : replaced)
        llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction);
}

}  // namespace polder::compiler
