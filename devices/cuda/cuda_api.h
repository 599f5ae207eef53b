// The part of NVIDIA's CUDA driver API that this driver uses, found in libcuda.so.1 at run time.
//
// The declarations are our own, so that neither a build nor a run needs the CUDA toolkit. Names, values and layouts are
// those of the documented binary interface ("CUDA Driver API" reference, version 12); tests/driver/cuda_header_test.cpp
// compares them with the toolkit's header where one is installed.
//
// The table never changes after it is loaded. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <polder/result.h>
#include <string>

namespace polder::cuda {

using Device = int;
using DevicePointer = unsigned long long;
using Context = struct ContextOfCuda*;
using Stream = struct StreamOfCuda*;
using Event = struct EventOfCuda*;
using Module = struct ModuleOfCuda*;
using Function = struct FunctionOfCuda*;
using Link = struct LinkOfCuda*;
using MemoryHandle = unsigned long long;

enum Code : int {
    code_success = 0,
    code_out_of_memory = 2,
    code_not_ready = 600,
    code_host_memory_already_registered = 712,
};

enum Attribute : int {
    attribute_max_threads_per_block = 1,
    attribute_max_block_dim_x = 2,  // y and z follow
    attribute_max_grid_dim_x = 5,  // y and z follow
    attribute_max_shared_memory_per_block = 8,
    attribute_warp_size = 10,
    attribute_clock_rate_khz = 13,
    attribute_multiprocessor_count = 16,
    attribute_l2_cache_bytes = 38,
    attribute_unified_addressing = 41,
    attribute_compute_capability_major = 75,
    attribute_compute_capability_minor = 76,
    attribute_host_pointer_of_registered_memory = 91,  // kernels use registered memory at the host's addresses
    attribute_max_shared_memory_per_block_optin = 97,
    attribute_virtual_memory_management = 102,
    attribute_64_bit_stream_memory_operations = 122,
};
enum FunctionAttribute : int {
    function_max_threads_per_block = 0,
    function_shared_bytes = 1,
    function_local_bytes = 3,  // private memory of a thread
    function_registers = 4,
    function_max_dynamic_shared_bytes = 8,
};
enum PeerAttribute : int { peer_performance_rank = 1, peer_native_atomics = 3 };
enum JitOption : int { jit_error_log_buffer = 5, jit_error_log_buffer_bytes = 6 };
enum JitInput : int { jit_input_ptx = 1 };

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_default = 0;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned host_memory_portable = 1;  // for every context of the process
inline constexpr unsigned host_memory_mapped = 2;  // kernels may use it
inline constexpr unsigned wait_value_at_least = 0;
inline constexpr int granularity_recommended = 1;

struct MemoryLocation {
    int type = 1;  // a device
    int id = 0;
};
struct AllocationProperties {
    int type = 1;  // pinned
    int handle_types = 0;
    MemoryLocation location;
    void* windows_data = nullptr;
    struct {
        unsigned char compression = 0;
        unsigned char rdma = 0;
        unsigned short usage = 0;
        unsigned char reserved[4] = {};
    } flags;
};
struct AccessDescription {
    MemoryLocation location;
    int flags = 3;  // read and write
};
enum MemoryType : unsigned { memory_of_host = 1, memory_by_address = 4 };  // by_address: of any GPU
struct CopyEnd3D {
    size_t x_bytes = 0, y = 0, z = 0, level = 0;
    MemoryType type = memory_of_host;
    const void* host = nullptr;
    DevicePointer device = 0;
    void* array = nullptr;
    void* reserved = nullptr;
    size_t pitch = 0;
    size_t height = 0;
};
struct Copy3D {
    CopyEnd3D from;
    CopyEnd3D to;
    size_t width_bytes = 0, height = 0, depth = 0;
};

// Every function that is used: the name here, the name in the library, the parameters.
#define POLDER_CUDA_FUNCTIONS(X)                                                                                       \
    X(init, "cuInit", (unsigned))                                                                                      \
    X(driver_version, "cuDriverGetVersion", (int*))                                                                    \
    X(device_count, "cuDeviceGetCount", (int*))                                                                        \
    X(device_get, "cuDeviceGet", (Device*, int))                                                                       \
    X(device_name, "cuDeviceGetName", (char*, int, Device))                                                            \
    X(device_attribute, "cuDeviceGetAttribute", (int*, Attribute, Device))                                             \
    X(device_total_memory, "cuDeviceTotalMem_v2", (size_t*, Device))                                                   \
    X(device_can_access_peer, "cuDeviceCanAccessPeer", (int*, Device, Device))                                         \
    X(peer_attribute, "cuDeviceGetP2PAttribute", (int*, PeerAttribute, Device, Device))                                \
    X(primary_context_retain, "cuDevicePrimaryCtxRetain", (Context*, Device))                                          \
    X(primary_context_release, "cuDevicePrimaryCtxRelease_v2", (Device))                                               \
    X(context_set_current, "cuCtxSetCurrent", (Context))                                                               \
    X(context_get_current, "cuCtxGetCurrent", (Context*))                                                              \
    X(memory_info, "cuMemGetInfo_v2", (size_t*, size_t*))                                                              \
    X(stream_create, "cuStreamCreateWithPriority", (Stream*, unsigned, int))                                           \
    X(stream_destroy, "cuStreamDestroy_v2", (Stream))                                                                  \
    X(stream_query, "cuStreamQuery", (Stream))                                                                         \
    X(stream_wait_event, "cuStreamWaitEvent", (Stream, Event, unsigned))                                               \
    X(stream_wait_value, "cuStreamWaitValue64_v2", (Stream, DevicePointer, uint64_t, unsigned))                        \
    X(stream_write_value, "cuStreamWriteValue64_v2", (Stream, DevicePointer, uint64_t, unsigned))                      \
    X(event_create, "cuEventCreate", (Event*, unsigned))                                                               \
    X(event_destroy, "cuEventDestroy_v2", (Event))                                                                     \
    X(event_record, "cuEventRecord", (Event, Stream))                                                                  \
    X(event_query, "cuEventQuery", (Event))                                                                            \
    X(event_synchronize, "cuEventSynchronize", (Event))                                                                \
    X(event_elapsed_ms, "cuEventElapsedTime", (float*, Event, Event))                                                  \
    X(address_reserve, "cuMemAddressReserve", (DevicePointer*, size_t, size_t, DevicePointer, unsigned long long))     \
    X(address_free, "cuMemAddressFree", (DevicePointer, size_t))                                                       \
    X(memory_create, "cuMemCreate", (MemoryHandle*, size_t, const AllocationProperties*, unsigned long long))          \
    X(memory_release, "cuMemRelease", (MemoryHandle))                                                                  \
    X(memory_map, "cuMemMap", (DevicePointer, size_t, size_t, MemoryHandle, unsigned long long))                       \
    X(memory_unmap, "cuMemUnmap", (DevicePointer, size_t))                                                             \
    X(memory_set_access, "cuMemSetAccess", (DevicePointer, size_t, const AccessDescription*, size_t))                  \
    X(memory_granularity, "cuMemGetAllocationGranularity", (size_t*, const AllocationProperties*, int))                \
    X(host_allocate, "cuMemHostAlloc", (void**, size_t, unsigned))                                                     \
    X(host_free, "cuMemFreeHost", (void*))                                                                             \
    X(host_register, "cuMemHostRegister_v2", (void*, size_t, unsigned))                                                \
    X(host_unregister, "cuMemHostUnregister", (void*))                                                                 \
    X(host_device_pointer, "cuMemHostGetDevicePointer_v2", (DevicePointer*, void*, unsigned))                          \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (DevicePointer, const void*, size_t, Stream))                                   \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void*, DevicePointer, size_t, Stream))                                        \
    X(copy_within, "cuMemcpyDtoDAsync_v2", (DevicePointer, DevicePointer, size_t, Stream))                             \
    X(copy_peer, "cuMemcpyPeerAsync", (DevicePointer, Context, DevicePointer, Context, size_t, Stream))                \
    X(copy_3d, "cuMemcpy3DAsync_v2", (const Copy3D*, Stream))                                                          \
    X(fill_8, "cuMemsetD8Async", (DevicePointer, unsigned char, size_t, Stream))                                       \
    X(fill_16, "cuMemsetD16Async", (DevicePointer, unsigned short, size_t, Stream))                                    \
    X(fill_32, "cuMemsetD32Async", (DevicePointer, unsigned, size_t, Stream))                                          \
    X(module_load, "cuModuleLoadDataEx", (Module*, const void*, unsigned, JitOption*, void**))                         \
    X(module_unload, "cuModuleUnload", (Module))                                                                       \
    X(link_create, "cuLinkCreate_v2", (unsigned, JitOption*, void**, Link*))                                           \
    X(link_add, "cuLinkAddData_v2", (Link, JitInput, void*, size_t, const char*, unsigned, JitOption*, void**))        \
    X(link_complete, "cuLinkComplete", (Link, void**, size_t*))                                                        \
    X(link_destroy, "cuLinkDestroy", (Link))                                                                           \
    X(module_function, "cuModuleGetFunction", (Function*, Module, const char*))                                        \
    X(function_attribute, "cuFuncGetAttribute", (int*, FunctionAttribute, Function))                                   \
    X(function_set_attribute, "cuFuncSetAttribute", (Function, FunctionAttribute, int))                                \
    X(launch, "cuLaunchKernel",                                                                                        \
      (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**))        \
    X(error_name, "cuGetErrorName", (Code, const char**))

struct CudaApi {
#define POLDER_CUDA_DECLARE(name, symbol, parameters) Code(*name) parameters = nullptr;
    POLDER_CUDA_FUNCTIONS(POLDER_CUDA_DECLARE)
#undef POLDER_CUDA_DECLARE

    // Opens `library` and calls cuInit. device_not_found with a detail that names what is missing: library, function or GPU.
    // The library stays loaded until the process ends.
    [[nodiscard]] static Result<std::unique_ptr<const CudaApi>> load(const char* library);

    // "CUDA_ERROR_OUT_OF_MEMORY".
    [[nodiscard]] std::string name_of(Code code) const;
    // Converts a code: mem_object_allocation_failure when there was no memory, otherwise out_of_resources.
    [[nodiscard]] static Status status_of(Code code);
    // True for a failure after which no call for the context succeeds.
    [[nodiscard]] static bool is_fatal(Code code);
    // An Error for a failed call.
    [[nodiscard]] Error error(Code code, const char* what) const;
};

}  // namespace polder::cuda

// Returns the error of a call of the CUDA API from the enclosing function; without an error, continues.
#define POLDER_CUDA_TRY(api, call, what)                                                                               \
    do {                                                                                                               \
        if (const ::polder::cuda::Code polder_code = (api).call; polder_code != ::polder::cuda::code_success)          \
            [[unlikely]]                                                                                               \
            return ::polder::fail((api).error(polder_code, what));                                                     \
    } while (false)
