// Where the lanes of a loop keep their private variables: each lane has a copy. The copies of an array are interleaved where possible:
// element 0 of all lanes, then element 1 of all lanes, and so on. An index that is the same for all lanes is then one
// access to neighbouring elements, and LLVM can keep elements at constant indices in registers. Where numbers of several sizes are accessed, as in the
// state of a hash whose words are also bytes, an element is a word: a number of the largest size. Smaller ones are parts of words (interleaved_arrays.cpp).
#pragma once

#include <cstdint>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/Alignment.h>

namespace polder::compiler::workgroup {

class PrivateVariables {
public:
    explicit PrivateVariables(unsigned lanes) : lanes_(lanes) {}

    void add(const llvm::AllocaInst& variable);
    // Chooses the order of the copies. `is_masked`: whether a block runs under a mask.
    void interleave(llvm::function_ref<bool(const llvm::BasicBlock*)> is_masked);

    [[nodiscard]] bool empty() const { return strides_.empty(); }
    [[nodiscard]] bool contains(const llvm::Value* value) const { return strides_.contains(value); }
    [[nodiscard]] llvm::SmallVector<const llvm::AllocaInst*> all() const;

    // From one lane's copy to the next one's, in bytes; 0 for what is not a private variable.
    [[nodiscard]] uint64_t stride(const llvm::Value* variable) const { return strides_.lookup(variable); }
    [[nodiscard]] uint64_t bytes_of_all_lanes(const llvm::AllocaInst& variable) const;
    [[nodiscard]] llvm::Align alignment(const llvm::AllocaInst& variable) const;
    // In an array of words: the size of a word in bytes, where `access` loads or stores a part of one; else 0.
    [[nodiscard]] uint64_t word_of(const llvm::Instruction& access) const;
    // Whether `address` is one in an array of words.
    [[nodiscard]] bool is_in_words(const llvm::Value* address) const { return words_.contains(address); }
    // The factor for an offset that is added to `address`.
    [[nodiscard]] unsigned scale(const llvm::Value* address) const {
        return interleaved_.contains(address) ? lanes_ : 1;
    }

private:
    unsigned lanes_;
    llvm::DenseMap<const llvm::Value*, uint64_t> strides_;
    llvm::SmallPtrSet<const llvm::Value*, 16> interleaved_;  // variables, and addresses in them
    llvm::DenseMap<const llvm::Value*, uint64_t>
        words_;  // the size of a word, by variables that are arrays of words, and addresses in them
};

}  // namespace polder::compiler::workgroup
