// The order of the instructions in a long block whose independent parts follow one another.
//
// RIPEMD-160 has two lines of 80 steps. Each step waits for the one before, and the second line stands behind the first in the code. A processor looks ahead by a
// few hundred instructions, so it executes one line after the other and most of its units wait. LLVM's scheduler for x86 orders a block from its end only, and
// keeps such lines apart. From both ends it interleaves them.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

namespace llvm {
class ScheduleDAGInstrs;
struct MachineSchedContext;
}  // namespace llvm

namespace polder::compiler {

// One instruction of a block, in the order of the code.
struct BlockStep {
    struct Input {
        unsigned step = 0;  // an earlier one
        unsigned latency = 0;  // cycles
    };
    llvm::SmallVector<Input, 3> inputs;
    unsigned latency = 1;  // cycles until it is complete
};

struct LookAhead {
    unsigned steps = 1;  // how many steps may be begun that are not complete
    unsigned per_cycle = 1;  // how many begin in a cycle
};

// Cycles of the block when the processor begins the steps in their order, and completes them in their order. Linear time.
[[nodiscard]] unsigned cycles_in_order(llvm::ArrayRef<BlockStep> steps, LookAhead look_ahead);

// Cycles of the longest chain of steps.
[[nodiscard]] unsigned longest_chain(llvm::ArrayRef<BlockStep> steps);

// The target's scheduler, or for a function with a long block one that orders from both ends the blocks that the processor would wait in. LLVM's scheduler pass
// owns the result.
[[nodiscard]] llvm::ScheduleDAGInstrs* schedule_long_blocks(llvm::MachineSchedContext* context);

}  // namespace polder::compiler
