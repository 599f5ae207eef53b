// The intrinsics that the work-items of a sub-group execute together. lib/kernel's sub-group functions call them:
//
//   ulong _polder_sub_group_ballot(uint p)                  bit i: work-item i takes part, and its p is not 0
//   T     _polder_sub_group_shuffle_<bits>(T x, uint id)    x of work-item id; ids beyond the sub-group wrap around
//   T     _polder_sub_group_<reduce|inclusive|exclusive>_<operation>_<type>(T x)
//   T     _polder_sub_group_clustered_<operation>_<type>(T x, uint size)   size: a power of two
//   void  _polder_sub_group_sync()                          orders accesses to memory
//
// They stay calls until the vectorizer makes the sub-group's work-items the lanes of one vector. The work-items that take
// part in a call are the active lanes.
#pragma once

#include <cstdint>
#include <optional>

namespace llvm {
class BasicBlock;
class Constant;
class Function;
class Instruction;
class Type;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct SubGroupOperation {
    enum class Kind : uint8_t { ballot, shuffle, reduce, scan_inclusive, scan_exclusive, clustered, synchronize };
    enum class Combine : uint8_t { none, add, multiply, min, max, bit_and, bit_or, bit_xor };
    Kind kind = Kind::synchronize;
    Combine combine = Combine::none;
    bool is_unsigned = false;

    // Whether all work-items that take part get the same result, also when their operands differ.
    [[nodiscard]] bool is_same_for_all() const { return kind == Kind::ballot || kind == Kind::reduce; }
};

[[nodiscard]] bool is_sub_group_operation(const llvm::Function& function);

// Nothing for any other instruction.
[[nodiscard]] std::optional<SubGroupOperation> sub_group_operation(const llvm::Instruction& instruction);
[[nodiscard]] bool has_sub_group_operation(const llvm::BasicBlock& block);

// The neutral element of the operation (0 for a sum). `type`: of one work-item's value.
[[nodiscard]] llvm::Constant* identity_of(const SubGroupOperation& operation, llvm::Type& type);

// Sizes that a sub-group can have.
inline constexpr unsigned sub_group_size_min = 4;
inline constexpr unsigned sub_group_size_max = 64;
[[nodiscard]] constexpr bool is_sub_group_size(uint64_t size) {
    return size >= sub_group_size_min && size <= sub_group_size_max && (size & (size - 1)) == 0;
}

}  // namespace polder::compiler::workgroup
