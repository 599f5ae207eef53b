// The functions of OpenCL C whose results only a work-group function knows, by mangled name.
//
// Ids and sizes, barriers, and leaf functions for lib/kernel:
//   _polder_launch_context()    address of the LaunchContext
//   _polder_local_memory()      base of this work-group's local memory
//   _polder_scratch_memory()    base of what holds private variables across barriers
//   _polder_scratch_bytes()     its size
//   _polder_collective_slots()  8 bytes per work-item of a whole work-group, one place for all uses in a kernel
//   _polder_sub_group_lane()    which work-item of its sub-group
//   _polder_sub_group_number()  which sub-group of the work-group
//   _polder_sub_group_width()   work-items of a whole sub-group, a constant
//   _polder_sub_group_...       what a sub-group does together (sub_group_functions.h)
// After lowering, a kernel's body knows only `polder.local_id.<d>`, a pure function (also for the two numbers of a sub-group, as
// dimensions 3 and 4), `polder.barrier` and what sub-groups do together.
#pragma once

#include <cstdint>
#include <optional>

namespace llvm {
class Function;
class Instruction;
class Module;
}  // namespace llvm

namespace polder::compiler::workgroup {

enum class WorkItemFunction : uint8_t {
    work_dim,
    global_size,
    global_id,
    local_size,
    enqueued_local_size,
    local_id,
    num_groups,
    group_id,
    global_offset,
    global_linear_id,
    local_linear_id,
    barrier,
    launch_context,
    local_memory,
    scratch_memory,
    scratch_bytes,
    collective_slots,
    sub_group_lane,
    sub_group_number,
    sub_group_width,
    sub_group_operation,
};

// `polder.local_id.<d>` beyond the three dimensions.
inline constexpr unsigned lane_dimension = 3, sub_group_dimension = 4, id_count = 5;

// A work_group_barrier with a definition is lib/kernel's: a fence and a barrier.
[[nodiscard]] std::optional<WorkItemFunction> work_item_function(const llvm::Function& function);

[[nodiscard]] llvm::Function* local_id_leaf(llvm::Module& module, unsigned dimension);
[[nodiscard]] llvm::Function* barrier_leaf(llvm::Module& module);

// The dimension of a call to `polder.local_id.<d>`.
[[nodiscard]] std::optional<unsigned> local_id_dimension(const llvm::Instruction& instruction);
[[nodiscard]] bool is_barrier(const llvm::Instruction& instruction);

}  // namespace polder::compiler::workgroup
