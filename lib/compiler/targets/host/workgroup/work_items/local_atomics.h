// Atomic operations on __local memory without locked instructions. One thread executes all work-items of a group, and no other
// thread accesses the group's local memory, so a load, the operation and a store are enough.
//
// The vectorizer needs to see the operation in one piece: two lanes may change the same element, one after the other. So operations are
// marked while their addresses still show the local memory, and replaced after the vectorizer.
#pragma once

namespace llvm {
class Function;
class Instruction;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

inline constexpr const char* local_atomic_mark = "polder.local_atomic";

// Marks the atomic operations of `function` whose addresses are in `local_memory`.
void mark_local_atomics(llvm::Function& function, const llvm::Value& local_memory);

// Replaces the marked operations, and the copies that passes have made of them.
void replace_local_atomics(llvm::Function& function);

}  // namespace polder::compiler::workgroup
