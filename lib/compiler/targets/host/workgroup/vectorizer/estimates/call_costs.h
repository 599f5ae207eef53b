// What calls of functions that are not inlined cost as calls for all lanes (lane_calls.h), and one by one.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

namespace llvm {
class CallBase;
class Function;
class Instruction;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether the call has a callee, which asks nothing of the work-item itself.
[[nodiscard]] bool is_plain_call(const llvm::CallBase& call);

// Marks `function`, which may have a vector form, with the costs of a call.
void note_costs_of_calls(llvm::Function& function, unsigned register_words);

// Whether `call` may be one call for `lanes` lanes.
[[nodiscard]] bool is_call_for_lanes(const llvm::Instruction& instruction, unsigned lanes);

// What a call of a marked function costs, in instructions.
struct CallCosts {
    double lanes = 0, one_by_one = 0;  // for all lanes
};
[[nodiscard]] CallCosts costs_of_call(const llvm::Instruction& call, unsigned lanes);

}  // namespace polder::compiler::workgroup
