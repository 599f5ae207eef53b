// How values grow from one iteration of a loop to the next, by the form of their expressions: without LLVM's ScalarEvolution, which would be computed
// anew after each change.
#pragma once

#include <cstdint>
#include <optional>

namespace llvm {
class Loop;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

// By how much the value grows in each iteration of the loop; nothing where that is no constant. For pointers, in bytes. `depth` counts the operations
// between the value and the one that was asked for.
[[nodiscard]] std::optional<int64_t> growth_of(const llvm::Value* value, const llvm::Loop& loop, unsigned depth = 0);

}  // namespace polder::compiler::workgroup
