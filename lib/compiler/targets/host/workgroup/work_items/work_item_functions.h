// The functions of OpenCL C that the work-group pass replaces, by mangled name: ids and sizes, barriers, and these intrinsics,
// which lib/kernel calls:
//
//   _polder_launch_context()    address of the LaunchContext
//   _polder_local_memory()      base of this work-group's local memory
//   _polder_scratch_memory()    base of the memory that holds private variables across barriers
//   _polder_scratch_bytes()     the size of that memory
//   _polder_collective_slots()  8 bytes for each work-item of a whole work-group; all calls in a kernel return the same address
//   _polder_sub_group_lane()    number of the work-item in its sub-group
//   _polder_sub_group_number()  number of the sub-group in the work-group
//   _polder_sub_group_width()   work-items of a whole sub-group, a constant
//   _polder_sub_group_...       operations of a whole sub-group (sub_group_functions.h)
// After lowering, a kernel's body calls only `polder.local_id.<d>`, a pure function, `polder.barrier`, and the operations of sub-groups. Dimensions 3
// and 4 of the function are the two numbers of the sub-group. Dimension 5 is the place of the work-item in the loops over the group: their
// order is not known yet, only that the first work-item's place is 0.
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
inline constexpr unsigned lane_dimension = 3, sub_group_dimension = 4, place_dimension = 5, id_count = 6;

// Nothing for a work_group_barrier with a body: that is lib/kernel's, which calls a fence and a barrier.
[[nodiscard]] std::optional<WorkItemFunction> work_item_function(const llvm::Function& function);

[[nodiscard]] llvm::Function* local_id_intrinsic(llvm::Module& module, unsigned dimension);
// Whether the module has the intrinsic for `dimension`, because some code needs it.
[[nodiscard]] bool has_local_id(const llvm::Module& module, unsigned dimension);
[[nodiscard]] llvm::Function* barrier_intrinsic(llvm::Module& module);

// The dimension of a call to `polder.local_id.<d>`.
[[nodiscard]] std::optional<unsigned> local_id_dimension(const llvm::Instruction& instruction);
[[nodiscard]] bool is_barrier(const llvm::Instruction& instruction);

// i1 polder.any_work_item(i1): true if the argument is true, and perhaps also if the argument is true for a neighbouring
// work-item. Accumulators use it. After vectorization, `forget_any_work_item` replaces the calls that are left by their argument.
[[nodiscard]] llvm::Function* any_work_item_intrinsic(llvm::Module& module);
[[nodiscard]] bool is_any_work_item(const llvm::Instruction& instruction);
void forget_any_work_item(llvm::Module& module);

}  // namespace polder::compiler::workgroup
