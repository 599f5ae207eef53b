// The results of OpenCL's work-item functions on NVPTX: values that the entry of a kernel computes from PTX's special registers
// and the hidden arguments.
#pragma once

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <compiler/compiler.h>

#include <array>
#include <llvm/IR/IRBuilder.h>
#include <optional>

namespace polder::compiler {

class WorkItems {
public:
    // Computes all values at the builder's position in the entry, which dominates all uses; LLVM removes unused ones.
    // `arguments` points to the kernel's parameter.
    WorkItems(llvm::IRBuilder<>& builder, llvm::Value* arguments, const KernelInfo& info,
              const std::optional<WorkGroups>& groups);

    // Whether this thread is a work-item; null when all are.
    [[nodiscard]] llvm::Value* is_in_range() const { return is_in_range_; }
    // The result of a call of `which`, computed at `at`; null when `which` does not return an id or a size.
    [[nodiscard]] llvm::Value* answer(llvm::IRBuilder<>& at, workgroup::WorkItemFunction which,
                                      llvm::Value* dimension) const;
    [[nodiscard]] llvm::Value* program_variables() const { return program_variables_; }
    [[nodiscard]] llvm::Value* print_ring() const { return print_ring_; }

private:
    using Values = std::array<llvm::Value*, 3>;
    [[nodiscard]] llvm::Value* select(llvm::IRBuilder<>& at, const Values& values, llvm::Value* dimension,
                                      uint64_t beyond) const;
    [[nodiscard]] llvm::Value* linear(llvm::IRBuilder<>& at, const Values& ids, const Values& sizes) const;

    // Gives the work-items of a work-group that is smaller than others the first threads of its block, so that all sub-groups but the
    // last are whole. Returns whether this thread is a work-item.
    [[nodiscard]] llvm::Value* number_in_order(llvm::IRBuilder<>& builder);
    [[nodiscard]] llvm::Value* is_below_global_size(llvm::IRBuilder<>& builder) const;

    Values local_id_{}, group_id_{}, whole_size_{}, local_size_{}, num_groups_{}, global_size_{}, global_offset_{};
    Values group_begin_{}, id_in_range_{}, global_id_{};
    llvm::Value* work_dim_ = nullptr;
    llvm::Value* thread_ = nullptr;  // within the block, in the order in which threads make warps
    llvm::Value* lane_ = nullptr;
    llvm::Value* program_variables_ = nullptr;
    llvm::Value* print_ring_ = nullptr;
    llvm::Value* is_in_range_ = nullptr;
};

}  // namespace polder::compiler
