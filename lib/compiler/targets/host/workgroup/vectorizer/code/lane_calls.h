// Calls for all lanes of a vector, of functions that are not inlined (vector_functions.h).
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <optional>

namespace polder::compiler::workgroup {

// Of the functions of call_for_lanes() that are loops over the lanes still.
inline constexpr const char* lanes_attribute = "polder-call-for-lanes";
// Of all functions of call_for_lanes(). In SPIR-V a program's own function may have the name of one of them.
inline constexpr const char* made_attribute = "polder-made-for-lanes";

// An argument of all lanes: a vector, or the first lane's value and the step from one lane to the next.
struct LaneArgument {
    llvm::Value* value = nullptr;
    std::optional<int64_t> step;
};

// Calls the function of `call` for the lanes in `mask`, which are one at least; null: for all lanes. `memory`: as in call_rare(). Returns the vector of
// results, in which elements of inactive lanes are undefined, or null when the function returns nothing.
llvm::Value* call_for_lanes(llvm::IRBuilder<>& builder, const llvm::CallInst& call, unsigned lanes,
                            llvm::ArrayRef<LaneArgument> arguments, llvm::Value* mask, llvm::AllocaInst*& memory);

}  // namespace polder::compiler::workgroup
