// Turns an OpenCL kernel into a work-group function: one call runs every work-item of one work-group
// (design decision 7; calling convention in include/polder/kernel_abi.h).
//
// Input: a kernel in a module that the caller may destroy, linked with everything it calls, not yet
// optimised, with the host's data layout and triple. Address spaces may be flattened to 0 or not;
// __local variables must be recognisable, as globals in addrspace(3) or by the global attribute
// "polder-local". Functions are known by their OpenCL names: see work_item_functions.h.
//
// Output: a new external function with the WorkGroupFunction ABI in the same module, in a form that
// LLVM's O3 pipeline vectorizes. The kernel itself is left in place, unused.
//
// Algorithm, in the order of the sources:
//   inliner      everything that reaches an id, a barrier or a __local variable becomes part of the kernel
//   lowering     ids become loads of the launch context and leaf calls; __local variables offsets
//   uniformity   which values and branches are the same for all work-items
//   hoisting     what is computed once per work-group
//   lane_dimension  which dimension becomes lanes
//   cuts         where all work-items meet: barriers, and uniform branches that decide between barriers
//   regions      the code between cuts, cloned per entry, in a work-item loop; what lives across a cut
//                is recomputed, kept once (uniform) or in an array over work-items in `scratch` (carried_values)
//                Code in which sub-groups do something together goes into loops over sub-groups instead (sub_group_loops).
//   vectorizer   neighbouring work-items become lanes, where that pays (lane_cost): what runs under masks (lane_plan), how
//                values differ between lanes (lane_shape), the code (vector_loop, lane_code) and its accesses to
//                memory (lane_memory, lane_access)
// A region is all that is reachable from one cut to the next ones, so that any control flow is right,
// reducible or not; the cost is that code reachable from several cuts is there several times.
//
// Threads: a call uses its module and its LLVMContext alone.
// Errors: llvm::Error with a sentence for the build log (recursion that reaches a barrier or an id).
#pragma once

#include <array>
#include <cstdint>
#include <llvm/Support/Error.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llvm {
class Function;
class TargetMachine;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct ArgumentSlot {
    uint64_t offset = 0;  // within the packed arguments
    // `image`: the parameter points to the slot.
    enum class Kind : uint8_t { value, local_pointer, image } kind = Kind::value;
};

// Whether neighbouring work-items may run side by side; `wherever_possible` is for tests.
enum class Lanes : uint8_t { none, where_they_pay, wherever_possible };

struct WorkGroupOptions {
    std::string name;  // symbol of the function to make
    std::vector<ArgumentSlot> arguments;  // one per parameter of the kernel
    // Specialise for this size of a whole work-group; the function must be called with no other.
    // The kernel's reqd_work_group_size has the same effect.
    std::optional<std::array<uint64_t, 3>> local_size;
    // Whether groups at the ends of the range may be smaller.
    enum class Ends : uint8_t { ragged, whole } ends = Ends::ragged;
    // What the code will run on; null: a generic machine of the module's triple.
    llvm::TargetMachine* target_machine = nullptr;
    Lanes lanes = Lanes::where_they_pay;
    // Work-items of a sub-group, unless the kernel's intel_reqd_sub_group_size says so: 4, 8, 16, 32 or 64.
    unsigned sub_group_size = 8;
};

// What became of the loops over work-items.
struct LaneReport {
    unsigned loops = 0;  // whose work-items are lanes
    unsigned scalar_loops = 0;  // one work-item at a time
    std::string reason;  // why the first of `scalar_loops`, or all, has no lanes: a clause for the user
    // Functions that lanes call one after the other, without those that are rarely called.
    std::set<std::string> serial_calls;
    unsigned width = 0;  // lanes
    unsigned dimension = 0;
};

struct WorkGroupResult {
    llvm::Function* function = nullptr;
    uint64_t local_bytes = 0;  // __local variables of the kernel and its callees
    uint64_t scratch_bytes_per_work_item = 0;  // 0: `scratch` may be null
    uint64_t private_bytes_per_work_item = 0;  // variables of a work-item that are in memory
    uint32_t vector_width = 1;  // work-items that one pass of the inner loop is meant to cover
    bool has_barriers = false;
    LaneReport lanes;
};

// Offsets of `kernel`'s parameters when packed one after the other at their natural alignment, as
// the runtime packs them. __local pointers are recognized by their address space or by kernel_arg_addr_space.
[[nodiscard]] std::vector<ArgumentSlot> pack_arguments(const llvm::Function& kernel);

[[nodiscard]] llvm::Expected<WorkGroupResult> make_work_group_function(llvm::Function& kernel,
                                                                       const WorkGroupOptions& options);

}  // namespace polder::compiler::workgroup
