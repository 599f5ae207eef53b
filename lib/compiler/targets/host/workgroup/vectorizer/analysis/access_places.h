// Where the accesses of a loop over work-items are: an address is a base plus terms, each a value times a number of bytes, plus a constant. Wrapping
// around is ignored, so places are for guesses only (structure_lengths.h).
#pragma once

#include <cstdint>
#include <llvm/ADT/SmallVector.h>

namespace llvm {
class Instruction;
class Loop;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct Term {
    llvm::Value* value = nullptr;
    int64_t bytes = 0;
    friend bool operator==(const Term&, const Term&) = default;
};

struct AddressSum {
    const llvm::Value* base = nullptr;
    llvm::SmallVector<Term, 4> terms;
    int64_t offset = 0;
};

// Accesses whose bases and terms agree: those of one structure, or of one element.
struct PlacedAccesses {
    AddressSum place;
    int64_t element_bytes = 0;
    llvm::SmallVector<int64_t, 8> offsets;  // of elements
};

class AccessPlaces {
public:
    explicit AccessPlaces(const llvm::Loop& loop) : loop_(loop) {}

    // Those of the loop's simple accesses that are understood.
    [[nodiscard]] llvm::SmallVector<PlacedAccesses> find() const;

    // Of a product of a number that follows the work-item and one that all of the loop's work-items share, which is computed outside of the loop or an
    // argument: the latter; else null.
    [[nodiscard]] llvm::Value* factor_of(const llvm::Value& value) const;

    // Whether the value is computed from the loop's counter, without what the work-item reads.
    [[nodiscard]] bool follows_work_item(const llvm::Value& value) const;

    // Whether the value is loaded from the block of arguments. Numbers in structures are loaded where they are used.
    [[nodiscard]] static bool is_argument(const llvm::Value& value);

    // Whether each summand of the value is an argument, or a product with one.
    [[nodiscard]] static bool is_from_arguments(const llvm::Value& value);

private:
    void add(llvm::Value& value, int64_t bytes, AddressSum& place) const;
    bool add_shifted(llvm::Value& value, uint64_t bits, int64_t bytes, AddressSum& place) const;
    static void add_term(llvm::Value& value, int64_t bytes, AddressSum& place);
    void add_access(llvm::Instruction& access, llvm::SmallVectorImpl<PlacedAccesses>& found) const;

    const llvm::Loop& loop_;
};

// The number that an integer extends or truncates.
[[nodiscard]] llvm::Value* root_of(llvm::Value* value);

}  // namespace polder::compiler::workgroup
