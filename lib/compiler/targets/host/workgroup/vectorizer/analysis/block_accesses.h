// The loads and stores of a block whose places differ by constants: elements of one structure, of neighbouring structures, of one row.
#pragma once

#include <llvm/IR/Instructions.h>
#include <tuple>

namespace polder::compiler::workgroup {

// How many elements of a structure a lane loads at once, at most.
inline constexpr unsigned lane_structure_max = 4;

// An address: a base, and the constant part in bytes.
struct Place {
    const llvm::Value* base = nullptr;
    int64_t offset = 0;
};
[[nodiscard]] Place place_of(const llvm::Instruction& access);

// A load or store that is neither atomic nor volatile.
[[nodiscard]] bool is_simple_access(const llvm::Instruction& access);

// Whether it loads from a private variable whose address is known nowhere else, so that no store to the memory of buffers changes it, or what no store changes.
[[nodiscard]] bool is_load_of_private(const llvm::Instruction& instruction);

struct PlacedAccess {
    int64_t offset = 0;  // in bytes from their common base
    llvm::Instruction* access = nullptr;
};

// The block must not change while this object lives.
class BlockAccesses {
public:
    explicit BlockAccesses(llvm::BasicBlock& block);

    // The simple loads (or stores) with the base and type of `access`, sorted by offset. `access` must be simple.
    [[nodiscard]] llvm::ArrayRef<PlacedAccess> neighbours_of(const llvm::Instruction& access) const;
    // The position of `access` among the instructions that access memory.
    [[nodiscard]] size_t number_of(const llvm::Instruction& access) const { return numbers_.lookup(&access); }
    // The loads of adjacent elements that one lane can load at once, sorted by address. `load` is one of them, perhaps the only one.
    [[nodiscard]] llvm::SmallVector<llvm::LoadInst*, lane_structure_max> structure_of(llvm::LoadInst& load) const;

    // The stores of adjacent elements that together fill a number of 16, 32 or 64 bits, or a vector of 128, sorted by address, when no other access that may
    // meet them is between them. `store` is one of them, perhaps the only one. No store is in two such groups.
    [[nodiscard]] llvm::SmallVector<llvm::StoreInst*, 8> number_with(llvm::StoreInst& store) const;

private:
    using Key = std::tuple<const llvm::Value*, const llvm::Type*, unsigned>;  // base, type, opcode
    static Key key_of(const llvm::Instruction& access, const llvm::Value* base);
    [[nodiscard]] bool are_one_number(llvm::ArrayRef<PlacedAccess> stores, int64_t bytes) const;
    [[nodiscard]] size_t length_of_number(llvm::ArrayRef<PlacedAccess> stores) const;
    void divide_into_groups(llvm::ArrayRef<PlacedAccess> neighbours);

    // Which of its neighbours an access is grouped with.
    struct Group {
        size_t first = 0, count = 1;
    };
    llvm::DenseMap<Key, llvm::SmallVector<PlacedAccess, 4>> neighbours_;
    llvm::DenseMap<const llvm::Instruction*, Group> groups_;  // only those of several accesses
    llvm::DenseMap<const llvm::Instruction*, size_t> numbers_;
};

// Whether each of `lanes` lanes loads this number of elements of its structure at once, where the structures have no constant step.
[[nodiscard]] bool is_loaded_at_once(const llvm::Type& element, size_t elements, unsigned lanes);

}  // namespace polder::compiler::workgroup
