// A small OpenCL implementation for tests: an ICD with one platform and one device, whose queues are threads and whose kernels
// are registered functions, or do nothing. It can be made to fail.
//
// FAKE_ICD in the environment, read when the platforms are asked for: "crash", "hang", "exit", "empty" (no platform), "polder"
// (claims to be Polder), "crash-later" (when it is asked for devices), "poor" (functions are missing) or "images" (the device has some).
#pragma once

#include <CL/cl.h>
#include <cstdint>
#include <polder/code.h>
#include <vector>

namespace polder::fake_icd {

// What a kernel of this name does. `parameters` say where its arguments lie in the block that the function is given; of an image that is an
// ImageDescriptor with an address, of a sampler its bits.
struct Kernel {
    WorkGroupFunction function = nullptr;
    uint64_t local_bytes = 0;
    uint64_t scratch_bytes_per_work_item = 0;
    std::vector<driver::KernelParameter> parameters;
};

// Exported by the library as fake_icd_register_kernel, fake_icd_fail, fake_icd_fail_call, fake_icd_failed_call, fake_icd_calls,
// fake_icd_live and fake_icd_live_queues.
using RegisterKernel = void (*)(const char* name, const Kernel* kernel);
// The calls of the function `call` fail with `code`, after `good` more good ones; 0 ends that. "execute" is the execution of
// commands that have been enqueued.
// "early release" is called when a context is released before its objects.
using Fail = void (*)(const char* call, cl_int code, int good);
// Of all calls from now on, number `index` (from 0) fails with `code`; -1: none. Executions of commands count, too.
using FailCall = void (*)(int64_t index, cl_int code);
using FailedCall = const char* (*)();  // the function whose call that was; null: not yet
// How often a function was called; "event": how many commands have made an event for the caller.
using Calls = uint64_t (*)(const char* call);
// Objects that have not been released; of these, queues: fake_icd_live_queues.
using Live = int64_t (*)();

}  // namespace polder::fake_icd
