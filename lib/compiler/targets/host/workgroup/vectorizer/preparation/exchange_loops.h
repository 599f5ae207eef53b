// Loops that repeat an atomic compare and exchange until it succeeds, such as the addition of floats:
//     do { old = *p; } while (atomic_cmpxchg(p, old, f(old)) != old);
// Lanes in step would repeat it once for each lane with the same address, and each time for all of them. So a lane runs the whole loop
// before the next one does: the loop becomes a function, which is called for one lane after the other.
//
// That is only right where no iteration waits for another work-item. Such loops are recognised: every iteration ends the loop or tries an exchange
// that fails only when memory was changed since the iteration before, or since this one loaded the value.
#pragma once

#include <llvm/IR/PassManager.h>

namespace llvm {
class Function;
class Instruction;
}  // namespace llvm

namespace polder::compiler::workgroup {

// In loops over work-items (work_item_loop_tag), such loops become calls, and so do the other exchanges.
void call_exchanges(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
