// Vector forms of functions that are not inlined.
//
// A function that is too long to be inlined was called for one lane after the other: SHA-256 of password crackers took 2.4 times as long as a peer's, which
// has vectors there. Such a function becomes vector code as a kernel does. It is called once, for all lanes of a vector.
#pragma once

#include "lane_target.h"
#include "targets/host/workgroup/frame/options.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PassManager.h>
#include <optional>
#include <set>
#include <string>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Makes the long functions that `kernel` calls from several places remain calls: with all of them inlined, it is too long to be compiled in lanes.
void call_long_functions(llvm::Function& kernel, llvm::TargetMachine* target);

// Simplifies the functions that `kernel` calls and that may have a vector form, as kernels are, and marks them.
void prepare_vector_functions(llvm::Function& kernel, unsigned register_words, llvm::TargetMachine* target);

// Whether `call` may be one call for `lanes` lanes.
[[nodiscard]] bool is_call_for_lanes(const llvm::Instruction& instruction, unsigned lanes);

// What a call of a marked function costs, in instructions.
struct CallCosts {
    double lanes = 0, one_by_one = 0;  // for all lanes
};
[[nodiscard]] CallCosts costs_of_call(const llvm::Instruction& call, unsigned lanes);

// An argument of all lanes: a vector, or the first lane's value and the step from one lane to the next.
struct LaneArgument {
    llvm::Value* value = nullptr;
    std::optional<int64_t> step;
};

// Calls the function of `call` for the lanes in `mask`, which are one at least; null: for all lanes. `memory`: as in call_rare(). Returns the vector of
// results, in which elements of inactive lanes are undefined, or null when the function returns nothing.
llvm::Value* call_for_lanes(llvm::IRBuilder<>& builder, const llvm::CallInst& call, unsigned lanes,
                            llvm::ArrayRef<LaneArgument> arguments, llvm::Value* mask, llvm::AllocaInst*& memory);

// Makes vector code of the functions of call_for_lanes() in `module`. Returns the names of those that remain loops over the lanes, because of an
// obstacle, or because lanes would be slower and `lanes` says that they have to pay.
std::set<std::string> vectorize_functions(llvm::Module& module, const LaneTarget& target, Lanes lanes,
                                          llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
