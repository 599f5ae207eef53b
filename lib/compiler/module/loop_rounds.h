// How often a loop runs at most, for loops that count upwards to a constant or to an argument of the function.
#pragma once

#include <cstdint>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Argument.h>
#include <optional>

namespace polder::compiler {

// The limit is the product.
struct Rounds {
    uint64_t constant = 1;
    const llvm::Argument* argument = nullptr;  // null: 1
};

// `loop` is in SSA form, not necessarily simplified. Nothing when the number is not known.
[[nodiscard]] std::optional<Rounds> rounds_of(const llvm::Loop& loop, const llvm::DominatorTree& dominators);

}  // namespace polder::compiler
