// Extensions of numbers of 32 bits to 64 that LLVM writes as a shift up and a shift back (LaneShapes::shifted_back).
#pragma once

#include <cstdint>
#include <llvm/IR/InstrTypes.h>
#include <optional>

namespace polder::compiler::workgroup {

// The first half of the extension of a product of 32 bits: `value * factor << 32`, as one shift or one multiplication.
struct HalfOfExtension {
    llvm::Value* value = nullptr;
    int64_t factor = 0;
};
[[nodiscard]] std::optional<HalfOfExtension> half_of_extension(const llvm::BinaryOperator& op);

}  // namespace polder::compiler::workgroup
