// Moves computations with the same result in each iteration of a loop before the loop.
//
// As llvm::Loop::makeLoopInvariant does, but for many values of one loop, in linear time: LLVM follows the operands of each value anew, so a sum of a thousand
// numbers, each of which is asked for, took a million steps, and as many calls one inside the other as the sum has numbers.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>

namespace llvm {
class Instruction;
class Loop;
class ScalarEvolution;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

// For a loop with a preheader whose instructions do not change otherwise meanwhile.
class MovedInvariants {
public:
    explicit MovedInvariants(llvm::Loop& loop, llvm::ScalarEvolution* evolution = nullptr)
        : loop_(loop), evolution_(evolution) {}

    // Whether `value` is computed before the loop, after what was moved. Operands are moved also where the value itself cannot be.
    bool move_out(llvm::Value& value);
    [[nodiscard]] bool is_changed() const { return is_changed_; }

private:
    llvm::Loop& loop_;
    llvm::ScalarEvolution* const evolution_;
    llvm::SmallPtrSet<const llvm::Instruction*, 32> staying_;
    bool is_changed_ = false;
};

}  // namespace polder::compiler::workgroup
