// Chooses elements of registers by indices in another register, with the instructions that x86 has for it.
#pragma once

#include <cstdint>
#include <llvm/IR/IRBuilder.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// What a processor has. `words`: chooses from eight elements of 32 bits, with AVX2. `two_registers`: from those of two registers of 512 bits, of 16, 32
// or 64 bits each. `bytes`: of eight bits as well.
enum class Permutes : uint8_t { none, words, two_registers, bytes };

// `machine`: null for none.
[[nodiscard]] Permutes permutes_of(const llvm::TargetMachine* machine);

// Whether elements of so many bits in registers of 512 bits are permuted.
[[nodiscard]] bool permutes_wide_registers(Permutes permutes, unsigned element_bits);

// For each lane the element whose number the lowest bits of its index are. `registers`: 1, 2 or 4 vectors, whose elements are numbered
// through; of 512 bits, or eight numbers of 32 bits. `indices`: any number of lanes, of the elements' type.
[[nodiscard]] llvm::Value* chosen_elements(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> registers,
                                           llvm::Value& indices);

// How many instructions it takes for each register of indices.
[[nodiscard]] unsigned permutations_for(unsigned registers, bool are_wide);

}  // namespace polder::compiler
