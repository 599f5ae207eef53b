// Vector forms of functions that are not inlined.
//
// A function that is too long to be inlined was called for one lane after the other: SHA-256 of password crackers took 2.4 times as long as a peer's, which
// has vectors there. Such a function becomes vector code as a kernel does. It is called once, for all lanes of a vector.
#pragma once

#include "targets/host/workgroup/frame/options.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <llvm/IR/PassManager.h>
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

// Makes vector code of the functions of call_for_lanes() (lane_calls.h) in `module`. Returns the names of those that remain loops over the lanes, because of an
// obstacle, or because lanes would be slower and `lanes` says that they have to pay.
std::set<std::string> vectorize_functions(llvm::Module& module, const LaneTarget& target, Lanes lanes,
                                          llvm::FunctionAnalysisManager& analyses);

}  // namespace polder::compiler::workgroup
