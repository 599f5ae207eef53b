// The check of cl_mem_flags.
#pragma once

#include <CL/cl.h>
#include <polder/result.h>

namespace polder::api {

inline constexpr cl_mem_flags device_access = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
// cl_ext_immutable_memory_objects; this platform's headers do not have it.
inline constexpr cl_mem_flags immutable = 1 << 6;
inline constexpr cl_mem_flags host_pointer_use = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
inline constexpr cl_mem_flags host_access = CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;

// Without std::popcount, which calls libgcc when the compiler may not assume that the processor has the instruction.
[[nodiscard]] inline bool at_most_one(cl_mem_flags flags) { return (flags & (flags - 1)) == 0; }

// Checks the flags of a new buffer or image.
[[nodiscard]] inline Result<void> check_flags(cl_mem_flags flags) {
    // CL_INVALID_VALUE: flags are unknown.
    if (flags & ~(device_access | host_pointer_use | host_access | immutable))
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: flags exclude each other: two accesses of devices or of the host, or CL_MEM_USE_HOST_PTR with another use of
    // host_ptr.
    if (!at_most_one(flags & device_access) || !at_most_one(flags & host_access))
        return fail(Status::invalid_value);
    if ((flags & CL_MEM_USE_HOST_PTR) && (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: CL_MEM_IMMUTABLE_EXT is combined with an access that writes.
    if ((flags & immutable) && (flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_HOST_WRITE_ONLY)))
        return fail(Status::invalid_value);
    return {};
}

// For objects that can only get their bytes from host_ptr. CL_INVALID_VALUE: CL_MEM_IMMUTABLE_EXT without CL_MEM_COPY_HOST_PTR or
// CL_MEM_USE_HOST_PTR.
[[nodiscard]] inline Result<void> check_contents(cl_mem_flags flags) {
    if ((flags & immutable) && !(flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR)))
        return fail(Status::invalid_value);
    return {};
}

// Checks the `flags` of an object that shares the bytes of another object with the flags `source`. CL_INVALID_VALUE: `flags` allow an
// access by kernels or by the host that `source` forbids.
[[nodiscard]] inline Result<void> check_access_within(cl_mem_flags source, cl_mem_flags flags) {
    struct {
        cl_mem_flags source, excludes;
    } const rules[] = {
        {CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY},
        {CL_MEM_READ_ONLY, CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY},
        {CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY},
        {CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY},
        {CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY},
    };
    for (const auto& rule : rules)
        if ((source & rule.source) && (flags & rule.excludes))
            return fail(Status::invalid_value);
    return {};
}

// Kernels read an immutable object and never write it.
[[nodiscard]] inline cl_mem_flags default_access(cl_mem_flags flags) {
    if (flags & device_access)
        return flags;
    return flags | (flags & immutable ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE);
}

}  // namespace polder::api
