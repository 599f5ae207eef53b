// A libcuda.so.1 that executes on the host, for tests of the CUDA driver without a GPU.
//
// It implements the functions that devices/cuda uses: streams are threads, device memory is host memory that is
// inaccessible until it is mapped and access is granted, kernels are PTX, which an interpreter executes (tests/support/ptx). A kernel
// that uses memory that its GPU cannot access, or traps, ends the context with CUDA's error code, as on a GPU. Tests of drivers may
// register a work-group function, which is executed instead of the kernel with its name. It refuses what the real library refuses or what the driver promises not to do: calls without a current
// context, asynchronous copies from or to host memory that is not pinned, memory beyond the GPU's.
//
// These functions steer it; tests find them with dlsym. Environment: FAKE_CUDA_DEVICES (2), FAKE_CUDA_MEMORY in MiB (256);
// FAKE_CUDA_OTHER_POINTERS: kernels do not use registered memory at the host's addresses. FAKE_CUDA_PROCESSOR: 90 for sm_90 (the default).
// FAKE_CUDA_ASSEMBLES: NVIDIA's assembler, if it is there (support/ptx_assembler.h), must accept all PTX, too.
#pragma once

#include <cstdint>
#include <polder/kernel_abi.h>

namespace polder::fake_cuda {

struct Kernel {
    WorkGroupFunction function;
    uint64_t local_bytes;
    uint64_t scratch_bytes_per_work_item;
};

// extern "C" names and types.
using RegisterKernel = void (*)(const char* entry, const Kernel* kernel);  // fake_cuda_register_kernel
using FailNext = void (*)(const char* function, int code);  // fake_cuda_fail_next: its next call fails
// fake_cuda_fail_always: each call fails until this is called with 0. Functions that only release something do it all the same.
using FailAlways = void (*)(const char* function, int code);
// fake_cuda_fail_call: of all functions' calls from now on, number `index` (from 0) fails; -1: none.
using FailCall = void (*)(int64_t index, int code);
using FailedCall = const char* (*)();  // fake_cuda_failed_call: the function whose call that was; null: not yet
using LoseDevice = void (*)(int device);  // fake_cuda_lose_device: as after a trap
using RestoreDevices = void (*)();  // fake_cuda_restore_devices: no GPU is lost, as in a new process
using LastFault = void (*)(char* text, uint64_t size);  // fake_cuda_last_fault: why a kernel has lost the GPU
using SetVersion = void (*)(int version);  // fake_cuda_set_version: of the driver, as cuDriverGetVersion returns it
using CountCalls = uint64_t (*)(const char* function);  // fake_cuda_calls
using CountCallsHere = uint64_t (*)(const char* function);  // fake_cuda_calls_here: by the calling thread
using CountBytes = uint64_t (*)(const char* function);  // fake_cuda_bytes: that it was asked to copy or to allocate
using HoldStreams = void (*)(bool held);  // fake_cuda_hold_streams: while held, no stream executes another command

}  // namespace polder::fake_cuda
