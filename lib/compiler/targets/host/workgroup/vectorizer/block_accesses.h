// The loads and stores of a block whose places differ by constants: elements of one structure, of neighbouring structures, of one row.
#pragma once

#include <llvm/IR/Instructions.h>
#include <tuple>

namespace polder::compiler::workgroup {

// The elements of a structure that a lane loads at once.
inline constexpr unsigned lane_structure_max = 4;

// An address: a base, and the constant part in bytes.
struct Place {
    const llvm::Value* base = nullptr;
    int64_t offset = 0;
};
[[nodiscard]] Place place_of(const llvm::Instruction& access);

// A load or store that is neither atomic nor volatile.
[[nodiscard]] bool is_simple_access(const llvm::Instruction& access);

struct PlacedAccess {
    int64_t offset = 0;  // in bytes from their common base
    llvm::Instruction* access = nullptr;
};

// The block must not change while this object lives.
class BlockAccesses {
public:
    explicit BlockAccesses(llvm::BasicBlock& block);

    // The loads, or stores, of the same base and type as `access`, which is simple, by place.
    [[nodiscard]] llvm::ArrayRef<PlacedAccess> neighbours_of(const llvm::Instruction& access) const;
    // The position of `access` among the instructions that access memory.
    [[nodiscard]] size_t number_of(const llvm::Instruction& access) const { return numbers_.lookup(&access); }
    // The loads of elements side by side, `load` among them, by address: what one lane can load at once. Alone: one load.
    [[nodiscard]] llvm::SmallVector<llvm::LoadInst*, lane_structure_max> structure_of(llvm::LoadInst& load) const;

    // The store of the element before or behind that of `store`, when no other access is between the two; each store has at most one such partner.
    [[nodiscard]] llvm::StoreInst* partner_of(const llvm::StoreInst& store) const;

private:
    using Key = std::tuple<const llvm::Value*, const llvm::Type*, unsigned>;  // base, type, opcode
    static Key key_of(const llvm::Instruction& access, const llvm::Value* base);

    llvm::DenseMap<Key, llvm::SmallVector<PlacedAccess, 4>> neighbours_;
    llvm::DenseMap<const llvm::Instruction*, size_t> numbers_;
};

// Whether `lanes` lanes load so many elements of a structure together, where the structures have no constant step.
[[nodiscard]] bool is_loaded_at_once(const llvm::Type& element, size_t elements, unsigned lanes);

}  // namespace polder::compiler::workgroup
