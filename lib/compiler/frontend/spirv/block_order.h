// The instructions of a module, each function's blocks in an order in which a block follows those that dominate it.
//
// SPIR-V asks for such an order. Translators from LLVM before version 16 keep LLVM's order, which may be any; every consumer accepts it.
// Pure; any thread. The result points into the binary.
#pragma once

#include "binary.h"

#include <vector>

namespace polder::compiler::spirv {

[[nodiscard]] std::vector<const Instruction*> with_ordered_blocks(const Binary& binary);

}  // namespace polder::compiler::spirv
