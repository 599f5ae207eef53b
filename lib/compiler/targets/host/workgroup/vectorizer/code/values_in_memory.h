// Values of all lanes in memory, and a loop over the active lanes that loads them one by one: for calls and instructions without a vector form
// (rare_calls.h, active_lanes.cpp). One such memory serves a whole function, because each use stores before it loads.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PassManager.h>

namespace polder::compiler::workgroup {

constexpr uint64_t values_align = 64;

// Whether a vector of `type` has the same layout in memory as an array of it.
[[nodiscard]] bool is_array_element(llvm::Type& type, const llvm::DataLayout& layout);

// Places in bytes from the beginning of the memory: one vector after the other.
class PlacesInMemory {
public:
    PlacesInMemory(const llvm::DataLayout& layout, unsigned lanes) : layout_(layout), lanes_(lanes) {}
    uint64_t next(llvm::Type& element);
    [[nodiscard]] uint64_t bytes() const { return bytes_; }

private:
    const llvm::DataLayout& layout_;
    const unsigned lanes_;
    uint64_t bytes_ = 0;
};

// Where the values of a call for all lanes lie in memory: those of the arguments, then the result.
struct ValuesOfCall {
    ValuesOfCall(const llvm::CallInst& call, unsigned lanes);
    llvm::SmallVector<uint64_t> arguments;
    uint64_t result = 0, bytes = 0;
};

// The address of the value of `lane` in memory that begins at `memory`.
[[nodiscard]] llvm::Value* address_of_lane(llvm::IRBuilder<>& at, llvm::Value& memory, uint64_t place,
                                           llvm::Type& element, llvm::Value& lane);

// `known`, enlarged to `bytes` if needed, or a new variable of the function.
[[nodiscard]] llvm::AllocaInst* memory_for(uint64_t bytes, llvm::Function& function, llvm::AllocaInst* known);

// The mask's lanes as bits of 64.
[[nodiscard]] llvm::Value* mask_bits(llvm::IRBuilder<>& at, llvm::Value& mask);

// Emits a loop: `body` for each bit that is set in `bits`, lowest first, with its number. At least one must be set.
void for_each_lane(llvm::IRBuilder<>& at, llvm::Value& bits, llvm::function_ref<void(llvm::Value& lane)> body);

// Emits a loop over `lanes` lanes that becomes vector code (vectorizer.h), from the block of `at` to `after`: `body` for each lane, or where `bits` is not null for each
// one whose bit is set.
void loop_over_lanes(llvm::IRBuilder<>& at, unsigned lanes, llvm::Value* bits, llvm::BasicBlock& after,
                     llvm::function_ref<void(llvm::Value& lane)> body);

// The call in `function`, which calls one function with a body for lane after lane; null: none.
[[nodiscard]] llvm::CallInst* callee_call_in(llvm::Function& function);

// For a function into which this call was inlined: its variables and those of the callee.
void put_variables_into_registers(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
