// Builds the work-group function's frame around a kernel: parameters from the packed arguments, ids and
// sizes from the launch context, __local variables as offsets into local memory.
#pragma once

#include "options.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/Error.h>

namespace polder::compiler::workgroup {

using Extent = std::array<llvm::Value*, 3>;

// A work-group function whose body is still the code of one work-item: local ids are calls of
// `polder.local_id.<d>`, barriers are calls of `polder.barrier`. All values in `prologue`, the entry
// block, are the same for all work-items, except for static allocas.
struct LoweredKernel {
    llvm::Function* function = nullptr;
    llvm::BasicBlock* prologue = nullptr;
    llvm::CallInst* sizes = nullptr;  // while passes run: a call that uses the sizes below, in the entry block
    Extent local_size{};              // of a whole work-group
    Extent actual_size{};             // of this work-group
    Extent first_id{};                // in usual launches: global ids of the first work-item of this work-group
    std::array<unsigned, 3> order{0, 1, 2};  // of the loops over the dimensions, innermost first: its items are lanes
    uint64_t local_bytes = 0;
    bool uses_collective_slots = false;  // when true, the collective slots are the first array in scratch
    // Work-items of a sub-group, if the kernel uses sub-groups; else 0.
    unsigned sub_group_size = 0;
};

inline constexpr uint64_t collective_slot_bytes = 8;

// The scalar passes merge the prologue with the block after it: splits them again, and finds the sizes.
void restore_prologue(LoweredKernel& kernel);

[[nodiscard]] llvm::Expected<LoweredKernel> lower_kernel(llvm::Function& kernel, const WorkGroupOptions& options);

}  // namespace polder::compiler::workgroup
