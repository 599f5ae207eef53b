// The calling convention of include/polder/kernel_abi.h for generated code: byte offsets of LaunchContext's members and
// the order of a work-group function's parameters. The assertions compare them with the C++ declarations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <polder/kernel_abi.h>

namespace polder::compiler::workgroup::abi {

static_assert(kernel_abi_version == 2, "generated code below was written for version 2");

// Parameters of a WorkGroupFunction, in order.
enum Parameter : unsigned { args = 0, context = 1, group_id = 2, local_memory = 3, scratch = 4, parameter_count = 5 };

// Members of LaunchContext. Arrays are of three uint64_t.
inline constexpr uint64_t global_offset = 0;
inline constexpr uint64_t global_size = 24;
inline constexpr uint64_t local_size = 48;
inline constexpr uint64_t num_groups = 72;
inline constexpr uint64_t work_dim = 96;
inline constexpr uint64_t context_bytes = 136;

static_assert(offsetof(LaunchContext, global_offset) == global_offset);
static_assert(offsetof(LaunchContext, global_size) == global_size);
static_assert(offsetof(LaunchContext, local_size) == local_size);
static_assert(offsetof(LaunchContext, num_groups) == num_groups);
static_assert(offsetof(LaunchContext, work_dim) == work_dim);
static_assert(sizeof(LaunchContext) == context_bytes);

// The minimum alignment of the packed arguments, so that aligned loads can be used for vector arguments.
inline constexpr uint64_t args_alignment = 16;

}  // namespace polder::compiler::workgroup::abi
