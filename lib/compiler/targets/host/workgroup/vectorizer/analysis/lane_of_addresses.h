// The address of one lane of a vector of addresses.
//
// Where all lanes count from one base, the processor adds the base and a lane's index, which it also multiplies, when it accesses the element. A vector of
// addresses would be computed first: shifted, added, and twice as many registers for indices of 32 bits.
#pragma once

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler {

inline llvm::Value* lane_of_addresses(llvm::IRBuilderBase& builder, llvm::Value& addresses, unsigned lane) {
    using namespace llvm::PatternMatch;
    const auto* const elements = llvm::dyn_cast<llvm::GEPOperator>(&addresses);
    if (elements == nullptr || elements->getNumIndices() != 1 || llvm::isa<llvm::Constant>(elements))
        return builder.CreateExtractElement(&addresses, lane);
    llvm::Value* base = const_cast<llvm::Value*>(elements->getPointerOperand());
    llvm::Value* index = *elements->idx_begin();
    const auto from = [&](llvm::Value* place, llvm::Value* step) {
        return builder.CreateGEP(elements->getSourceElementType(), place, step, "", elements->getNoWrapFlags());
    };
    if (!index->getType()->isVectorTy())
        return from(lane_of_addresses(builder, *base, lane), index);
    if (base->getType()->isVectorTy())
        base = llvm::getSplatValue(base);
    if (base == nullptr || llvm::isa<llvm::Constant>(index))
        return builder.CreateExtractElement(&addresses, lane);
    llvm::Value* narrow = nullptr;
    if (match(index, m_ZExt(m_Value(narrow))))
        return from(base,
                    builder.CreateZExt(builder.CreateExtractElement(narrow, lane), index->getType()->getScalarType()));
    return from(base, builder.CreateExtractElement(index, lane));
}

}  // namespace polder::compiler
