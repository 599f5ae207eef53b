#include "growth.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

std::optional<int64_t> growth_of(const llvm::Value* value, const llvm::Loop& loop, unsigned depth) {
    constexpr unsigned depth_max = 8;
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr || !loop.contains(instruction))
        return 0;
    if (depth > depth_max)
        return std::nullopt;
    using namespace llvm::PatternMatch;
    const llvm::APInt* constant = nullptr;
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
        const llvm::BasicBlock* const latch = loop.getLoopLatch();
        if (phi->getParent() != loop.getHeader() || latch == nullptr)
            return std::nullopt;
        const llvm::Value* const next = phi->getIncomingValueForBlock(latch);
        llvm::APInt bytes(instruction->getDataLayout().getIndexTypeSizeInBits(phi->getType()), 0);
        if (phi->getType()->isPointerTy() &&
            next->stripAndAccumulateConstantOffsets(instruction->getDataLayout(), bytes, true) == phi)
            return bytes.getSExtValue();
        return match(next, m_c_Add(m_Specific(phi), m_APInt(constant))) ? constant->trySExtValue() : std::nullopt;
    }
    const auto of = [&](unsigned operand) { return growth_of(instruction->getOperand(operand), loop, depth + 1); };
    if (llvm::isa<llvm::SExtInst, llvm::ZExtInst, llvm::TruncInst, llvm::FreezeInst, llvm::AddrSpaceCastInst>(
            instruction))
        return of(0);
    if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(instruction)) {
        auto growth = of(0);
        for (auto part = llvm::gep_type_begin(address); growth && part != llvm::gep_type_end(address); ++part) {
            const auto index = growth_of(part.getOperand(), loop, depth + 1);
            growth = index ? std::optional(*growth + *index * static_cast<int64_t>(part.getSequentialElementStride(
                                                                  address->getDataLayout())))
                           : std::nullopt;
        }
        return growth;
    }
    switch (instruction->getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Or:
    case llvm::Instruction::Sub: {
        const auto left = of(0), right = of(1);
        if (!left || !right)
            return std::nullopt;
        return instruction->getOpcode() == llvm::Instruction::Sub ? *left - *right : *left + *right;
    }
    case llvm::Instruction::Shl:
    case llvm::Instruction::Mul: {
        const auto growth = of(0);
        if (!growth || !match(instruction->getOperand(1), m_APInt(constant)) || constant->getActiveBits() > 20)
            return std::nullopt;
        return instruction->getOpcode() == llvm::Instruction::Mul ? *growth * constant->getSExtValue()
                                                                  : *growth << constant->getZExtValue();
    }
    default: return std::nullopt;
    }
}

}  // namespace polder::compiler::workgroup
