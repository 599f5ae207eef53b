// Explicit vectors whose elements are taken from another one at computed places, as shuffle() does. In lanes whose vectors stay whole, the vectors of all
// lanes of a register are one permutation.
//
// Eight elements take eight extractions, of seven choices each (chosen_elements.h), and seven insertions.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/permutations.h"

#include <llvm/IR/Instructions.h>
#include <optional>

namespace polder::compiler::workgroup {

struct ShuffledElements {
    llvm::Value *elements = nullptr, *places = nullptr;  // vectors; each place is below the number of elements
};

// `last` completes the vector of `places`.
[[nodiscard]] std::optional<ShuffledElements> shuffled_elements(llvm::InsertElementInst& last);

// Whether there is a permutation for the vectors of `lanes` lanes.
[[nodiscard]] bool is_permuted(const ShuffledElements& shuffled, unsigned lanes, Permutes permutes);

// The vectors of all lanes side by side, from `elements` and `places` of all lanes.
[[nodiscard]] llvm::Value* permuted(llvm::IRBuilder<>& builder, llvm::Value& elements, llvm::Value& places,
                                    unsigned lanes);

}  // namespace polder::compiler::workgroup
