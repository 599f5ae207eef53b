// Explicit vectors whose elements are taken from another one at computed places, as shuffle() does. In lanes whose vectors stay whole, the vectors of all
// lanes of a register are one permutation.
//
// Eight elements take eight extractions, of seven choices each (chosen_elements.h), and seven insertions.
//
// Registers of 512 bits are permuted as a whole. AVX2 chooses bytes within each half of a register of 256 bits; shorts are two bytes each, and four
// words have an instruction of their own.
#pragma once

#include "permutations.h"

#include <llvm/IR/Instructions.h>
#include <optional>

namespace polder::compiler::workgroup {

struct ShuffledElements {
    llvm::Value *elements = nullptr, *places = nullptr;  // vectors; each place is below the number of elements
};

// `last` completes the vector of `places`.
[[nodiscard]] std::optional<ShuffledElements> shuffled_elements(const llvm::InsertElementInst& last);

// Whether there is a permutation for the vectors of `lanes` lanes.
[[nodiscard]] bool is_permuted(const ShuffledElements& shuffled, unsigned lanes, Permutes permutes);

// For each register, where the instruction is a part of such a permutation: all of them at its last part, none at the others.
[[nodiscard]] std::optional<double> instructions_of_shuffle(const llvm::Instruction& part, unsigned lanes,
                                                            Permutes permutes);

// The same for vectors of one work-item that LLVM makes one instruction of: how many it saves, compared with a choice of each element by the bits of its place.
[[nodiscard]] std::optional<double> saved_by_whole_shuffle(const llvm::Instruction& part, Permutes permutes);

// The vectors of all lanes side by side, from `elements` and `places` of all lanes.
[[nodiscard]] llvm::Value* permuted(llvm::IRBuilder<>& builder, llvm::Value& elements, llvm::Value& places,
                                    unsigned lanes, Permutes permutes);

}  // namespace polder::compiler::workgroup
