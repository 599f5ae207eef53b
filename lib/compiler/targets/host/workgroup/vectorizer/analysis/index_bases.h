// The bases of work-items' indices, which are checked before a loop (LaneShapes::assume_small): sums with their constants outermost.
//
// A kernel that looks at neighbours has several indices that differ by constants: `y * width + x - 1`, `y * width + x`. Written as one root
// plus constants, one check is enough for all of them, and one register holds the address of all.
#pragma once

#include <cstdint>
#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Value.h>

namespace polder::compiler::workgroup {

struct OffsetBase {
    llvm::Value* root = nullptr;
    int64_t offset = 0;  // small: |offset| <= 2^20
};
// `base` as a root plus a constant. The root of a small constant is 0.
[[nodiscard]] OffsetBase without_offset(llvm::Value& base);

// Whether a number from 2^31 to 2^32 is added to `base`, of 64 bits: a negative one where only the lower 32 bits are used. LLVM writes `y - 1` like this
// when it computes with ids of 64 bits.
[[nodiscard]] bool adds_negative_half(const llvm::Value& base);

// Sums in the preheader of one loop. Equal sums are one instruction.
class IndexBases {
public:
    llvm::Value* sum(llvm::Value& left, llvm::Value& right, llvm::Instruction& before);

private:
    llvm::Value* plain_sum(llvm::Value& left, llvm::Value& right, llvm::Instruction& before);

    llvm::DenseMap<std::pair<llvm::Value*, llvm::Value*>, llvm::Value*> sums_;
};

}  // namespace polder::compiler::workgroup
