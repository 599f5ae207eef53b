// AMD's Zen processors, whose gathers, tables of pages, loads, roots and small results take other times than those of Intel's processors with the same
// instructions.
#pragma once

#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {

[[nodiscard]] inline bool is_zen(const llvm::TargetMachine& machine) {
    return machine.getTargetCPU().starts_with("znver");
}

}  // namespace polder::compiler
