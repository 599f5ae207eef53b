// The calling convention between compiled kernels and the drivers that execute them on the host.
//
// A kernel is compiled to a *work-group function*: it runs every work-item of one work-group. The
// compiler (lib/compiler) emits it, and a driver calls it, once per work-group, from any thread.
// Generated code depends on these layouts: change them together with
// lib/compiler/targets/host/workgroup/frame/abi.h and increment `kernel_abi_version`, which is part of
// every cache key and program binary.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polder {

inline constexpr uint32_t kernel_abi_version = 2;

class DeviceEnqueue;  // device_enqueue_abi.h

// The values that are the same for all work-groups of one launch. All arrays are padded with 1 (sizes) or
// 0 (offsets) beyond `work_dim`.
struct LaunchContext {
    uint64_t global_offset[3];
    uint64_t global_size[3];
    uint64_t local_size[3];  // of a whole ("uniform") work-group
    uint64_t num_groups[3];  // rounded up: the last group of a dimension may be smaller
    uint32_t work_dim;
    uint32_t local_bytes;  // size of the local_memory of each work-group

    // Base of the program-scope variables of (program, device), as an address that the executing
    // thread can dereference; null when the program has none.
    std::byte* program_variables;

    // Receives one finished printf text (not null-terminated). Never null. Thread-safe.
    void (*print)(void* user, const char* text, size_t size);
    void* print_user;

    // Takes the blocks that the kernel enqueues. Null for a kernel that enqueues none.
    DeviceEnqueue* device_enqueue;
};

// args              Packed arguments at the offsets of KernelArgument::offset. Pointers are 8
//                   bytes, already meaningful to the executing thread. A __local pointer
//                   argument holds its byte offset within `local_memory`, not an address.
// group_id          Which work-group; group_id[d] < num_groups[d].
// local_memory      This work-group's local memory: first the kernel's own __local variables
//                   (KernelInfo::local_bytes), then the __local arguments. Aligned to 128.
// scratch           Private memory for values that live across barriers:
//                   KernelInfo::scratch_bytes_per_work_item times the number of work-items of a
//                   whole work-group, plus 4096. Aligned to 128. Contents undefined. May be null
//                   when scratch_bytes_per_work_item is 0.
using WorkGroupFunction = void (*)(const std::byte* args, const LaunchContext* context, const uint64_t* group_id,
                                   std::byte* local_memory, std::byte* scratch);

inline constexpr uint64_t local_memory_alignment = 128;

} // namespace polder
