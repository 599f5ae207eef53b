// Compares our declarations of the CUDA driver API (devices/cuda/cuda_api.h) with the toolkit's header. Built where the
// toolkit is installed; everything is checked by the compiler.
#include <cstddef>
#include <cuda.h>
#include <cuda/cuda_api.h>

namespace polder::cuda {

static_assert(sizeof(Device) == sizeof(CUdevice) && sizeof(DevicePointer) == sizeof(CUdeviceptr) &&
              sizeof(MemoryHandle) == sizeof(CUmemGenericAllocationHandle) && sizeof(Context) == sizeof(CUcontext));

static_assert(code_out_of_memory == static_cast<int>(CUDA_ERROR_OUT_OF_MEMORY) &&
              code_not_ready == static_cast<int>(CUDA_ERROR_NOT_READY) &&
              code_host_memory_already_registered == static_cast<int>(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED));

#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
SAME(attribute_max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(attribute_max_block_dim_x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME(attribute_max_block_dim_x + 2, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME(attribute_max_grid_dim_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(attribute_max_grid_dim_x + 2, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME(attribute_max_shared_memory_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(attribute_warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(attribute_clock_rate_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(attribute_multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(attribute_l2_cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(attribute_compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(attribute_compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(attribute_max_shared_memory_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(attribute_virtual_memory_management, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(attribute_64_bit_stream_memory_operations, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME(function_max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(function_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(function_local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(function_registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(function_max_dynamic_shared_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(jit_error_log_buffer, CU_JIT_ERROR_LOG_BUFFER);
SAME(jit_error_log_buffer_bytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(stream_non_blocking, CU_STREAM_NON_BLOCKING);
SAME(event_disable_timing, CU_EVENT_DISABLE_TIMING);
SAME(host_memory_portable, CU_MEMHOSTALLOC_PORTABLE);
SAME(host_memory_portable, CU_MEMHOSTREGISTER_PORTABLE);
SAME(granularity_recommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(MemoryLocation{}.type, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(AccessDescription{}.flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(AllocationProperties{}.type, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(memory_of_host, CU_MEMORYTYPE_HOST);
SAME(memory_by_address, CU_MEMORYTYPE_UNIFIED);

static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp) &&
              offsetof(AllocationProperties, location) == offsetof(CUmemAllocationProp, location) &&
              offsetof(AllocationProperties, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc) &&
              offsetof(AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(Copy3D) == sizeof(CUDA_MEMCPY3D) &&
              offsetof(CopyEnd3D, type) == offsetof(CUDA_MEMCPY3D, srcMemoryType) &&
              offsetof(CopyEnd3D, host) == offsetof(CUDA_MEMCPY3D, srcHost) &&
              offsetof(CopyEnd3D, device) == offsetof(CUDA_MEMCPY3D, srcDevice) &&
              offsetof(CopyEnd3D, pitch) == offsetof(CUDA_MEMCPY3D, srcPitch) &&
              offsetof(Copy3D, to) == offsetof(CUDA_MEMCPY3D, dstXInBytes) &&
              offsetof(Copy3D, width_bytes) == offsetof(CUDA_MEMCPY3D, WidthInBytes));

}  // namespace polder::cuda

int main() { return 0; }
