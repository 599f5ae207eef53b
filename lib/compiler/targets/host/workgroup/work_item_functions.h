// The functions of OpenCL C whose results only a work-group function knows, by mangled name.
//
// Ids and sizes, barriers, and leaf functions for lib/kernel:
//   _polder_launch_context()    address of the LaunchContext
//   _polder_local_memory()      base of this work-group's local memory
//   _polder_scratch_memory()    base of what holds private variables across barriers
//   _polder_scratch_bytes()     its size
//   _polder_collective_slots()  8 bytes per work-item of a whole work-group, one place for all uses in a kernel
// After lowering, a kernel's body knows only two of its own: `polder.local_id.<d>`, a pure function, and
// `polder.barrier`.
#pragma once

#include <cstdint>
#include <optional>

namespace llvm {
class Function;
class Instruction;
class Module;
} // namespace llvm

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
};

// A work_group_barrier with a definition is lib/kernel's: a fence and a barrier.
[[nodiscard]] std::optional<WorkItemFunction> work_item_function(const llvm::Function& function);

[[nodiscard]] llvm::Function* local_id_leaf(llvm::Module& module, unsigned dimension);
[[nodiscard]] llvm::Function* barrier_leaf(llvm::Module& module);

// The dimension of a call to `polder.local_id.<d>`.
[[nodiscard]] std::optional<unsigned> local_id_dimension(const llvm::Instruction& instruction);
[[nodiscard]] bool is_barrier(const llvm::Instruction& instruction);

} // namespace polder::compiler::workgroup
