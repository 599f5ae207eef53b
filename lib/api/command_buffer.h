// cl_khr_command_buffer 0.9.8, cl_khr_command_buffer_mutable_dispatch 0.9.5 and cl_khr_command_buffer_multi_device 0.9.2.
//
// The functions are only found by name (clGetExtensionFunctionAddressForPlatform). They are in a namespace, because
// older headers of Khronos declare some of them with other parameters. This file also declares types and values that these
// headers lack, or have in another form.
#pragma once

#include "enqueue.h"

#include <runtime/command_buffer.h>

#include <CL/cl_ext.h>

// X(name): every function.
#define POLDER_COMMAND_BUFFER_FUNCTIONS(X)                                                                             \
    X(clCreateCommandBufferKHR)                                                                                        \
    X(clRetainCommandBufferKHR)                                                                                        \
    X(clReleaseCommandBufferKHR)                                                                                       \
    X(clFinalizeCommandBufferKHR)                                                                                      \
    X(clEnqueueCommandBufferKHR)                                                                                       \
    X(clGetCommandBufferInfoKHR)                                                                                       \
    X(clCommandBarrierWithWaitListKHR)                                                                                 \
    X(clCommandCopyBufferKHR)                                                                                          \
    X(clCommandCopyBufferRectKHR)                                                                                      \
    X(clCommandFillBufferKHR)                                                                                          \
    X(clCommandCopyImageKHR)                                                                                           \
    X(clCommandCopyImageToBufferKHR)                                                                                   \
    X(clCommandCopyBufferToImageKHR)                                                                                   \
    X(clCommandFillImageKHR)                                                                                           \
    X(clCommandNDRangeKernelKHR)                                                                                       \
    X(clCommandSVMMemcpyKHR)                                                                                           \
    X(clCommandSVMMemFillKHR)                                                                                          \
    X(clUpdateMutableCommandsKHR)                                                                                      \
    X(clGetMutableCommandInfoKHR)                                                                                      \
    X(clRemapCommandBufferKHR)

namespace polder::api::command_buffer {

using Property = cl_properties;

constexpr cl_bitfield capability_multiple_queue = 1 << 4;  // CL_COMMAND_BUFFER_CAPABILITY_MULTIPLE_QUEUE_KHR
// CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR of every device.
constexpr cl_bitfield capabilities = CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR |
                                     CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR | capability_multiple_queue;
constexpr cl_command_queue_properties queue_properties =
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
constexpr cl_bitfield mutable_fields = CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR | CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR |
                                       CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR | CL_MUTABLE_DISPATCH_ARGUMENTS_KHR |
                                       CL_MUTABLE_DISPATCH_EXEC_INFO_KHR;

// Values that older headers lack.
constexpr cl_platform_info platform_capabilities_info = 0x0908;  // CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR
// CL_COMMAND_BUFFER_PLATFORM_UNIVERSAL_SYNC_KHR, _REMAP_QUEUES_KHR and _AUTOMATIC_REMAP_KHR.
constexpr cl_bitfield platform_capabilities = 7;
constexpr cl_device_info device_num_sync_devices = 0x12AB;
constexpr cl_device_info device_sync_devices = 0x12AC;
constexpr cl_bitfield flag_device_side_sync = 1 << 2;  // CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR
constexpr cl_device_info device_supported_queue_properties = 0x129A;
constexpr cl_command_buffer_info_khr context_info = 0x1299;
constexpr cl_command_buffer_state_khr state_finalized = 2;
constexpr Property mutable_dispatch_asserts_of_buffer = 0x12B7;
constexpr Property mutable_dispatch_asserts = 0x12B8;
constexpr cl_bitfield assert_no_additional_work_groups = 1;
constexpr cl_uint update_type_dispatch = 0;
constexpr cl_mutable_command_info_khr mutable_command_properties = 0x12A2;

// cl_mutable_dispatch_config_khr since version 0.9.4 of the extension.
struct DispatchConfig {
    cl_mutable_command_khr command;
    cl_uint num_args;
    cl_uint num_svm_args;
    cl_uint num_exec_infos;
    cl_uint work_dim;
    const cl_mutable_dispatch_arg_khr* arg_list;
    const cl_mutable_dispatch_arg_khr* arg_svm_list;
    const cl_mutable_dispatch_exec_info_khr* exec_info_list;
    const size_t* global_work_offset;
    const size_t* global_work_size;
    const size_t* local_work_size;
};

// Whether commands of two devices can wait for each other without the host, because both devices belong to one driver.
bool can_sync(const runtime::Device& one, const runtime::Device& other);

cl_command_buffer_khr CL_API_CALL clCreateCommandBufferKHR(cl_uint num_queues, const cl_command_queue* queues,
                                                           const Property* properties, cl_int* errcode_ret);
cl_int CL_API_CALL clRetainCommandBufferKHR(cl_command_buffer_khr command_buffer);
cl_int CL_API_CALL clReleaseCommandBufferKHR(cl_command_buffer_khr command_buffer);
cl_int CL_API_CALL clFinalizeCommandBufferKHR(cl_command_buffer_khr command_buffer);
cl_int CL_API_CALL clEnqueueCommandBufferKHR(cl_uint num_queues, cl_command_queue* queues,
                                             cl_command_buffer_khr command_buffer, cl_uint num_events,
                                             const cl_event* list, cl_event* event);
cl_int CL_API_CALL clGetCommandBufferInfoKHR(cl_command_buffer_khr command_buffer, cl_command_buffer_info_khr name,
                                             size_t value_size, void* value, size_t* value_size_ret);

cl_int CL_API_CALL clCommandBarrierWithWaitListKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                                   const Property* properties, cl_uint num_sync_points,
                                                   const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                                   cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandCopyBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                          const Property* properties, cl_mem src_buffer, cl_mem dst_buffer,
                                          size_t src_offset, size_t dst_offset, size_t size, cl_uint num_sync_points,
                                          const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                          cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandCopyBufferRectKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                              const Property* properties, cl_mem src_buffer, cl_mem dst_buffer,
                                              const size_t* src_origin, const size_t* dst_origin, const size_t* region,
                                              size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch,
                                              size_t dst_slice_pitch, cl_uint num_sync_points,
                                              const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                              cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandFillBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                          const Property* properties, cl_mem buffer, const void* pattern,
                                          size_t pattern_size, size_t offset, size_t size, cl_uint num_sync_points,
                                          const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                          cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandCopyImageKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                         const Property* properties, cl_mem src_image, cl_mem dst_image,
                                         const size_t* src_origin, const size_t* dst_origin, const size_t* region,
                                         cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                         cl_sync_point_khr* sync_point, cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandCopyImageToBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                                 const Property* properties, cl_mem src_image, cl_mem dst_buffer,
                                                 const size_t* src_origin, const size_t* region, size_t dst_offset,
                                                 cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                                 cl_sync_point_khr* sync_point, cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandCopyBufferToImageKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                                 const Property* properties, cl_mem src_buffer, cl_mem dst_image,
                                                 size_t src_offset, const size_t* dst_origin, const size_t* region,
                                                 cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                                 cl_sync_point_khr* sync_point, cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandFillImageKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                         const Property* properties, cl_mem image, const void* fill_color,
                                         const size_t* origin, const size_t* region, cl_uint num_sync_points,
                                         const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                         cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandNDRangeKernelKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                             const Property* properties, cl_kernel kernel, cl_uint work_dim,
                                             const size_t* global_work_offset, const size_t* global_work_size,
                                             const size_t* local_work_size, cl_uint num_sync_points,
                                             const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                             cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandSVMMemcpyKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                         const Property* properties, void* dst_ptr, const void* src_ptr, size_t size,
                                         cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                         cl_sync_point_khr* sync_point, cl_mutable_command_khr* mutable_handle);
cl_int CL_API_CALL clCommandSVMMemFillKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                          const Property* properties, void* svm_ptr, const void* pattern,
                                          size_t pattern_size, size_t size, cl_uint num_sync_points,
                                          const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                          cl_mutable_command_khr* mutable_handle);

cl_int CL_API_CALL clUpdateMutableCommandsKHR(cl_command_buffer_khr command_buffer, cl_uint num_configs,
                                              const cl_uint* config_types, const void** configs);
cl_int CL_API_CALL clGetMutableCommandInfoKHR(cl_mutable_command_khr command, cl_mutable_command_info_khr name,
                                              size_t value_size, void* value, size_t* value_size_ret);

cl_command_buffer_khr CL_API_CALL clRemapCommandBufferKHR(cl_command_buffer_khr command_buffer, cl_bool automatic,
                                                          cl_uint num_queues, const cl_command_queue* queues,
                                                          cl_uint num_handles, const cl_mutable_command_khr* handles,
                                                          cl_mutable_command_khr* handles_ret, cl_int* errcode_ret);

// Checks a list of queues for a command buffer. `count` is not 0, `queues` is not null. CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT.
Result<std::vector<Ref<runtime::Queue>>> queues_of(cl_uint count, const cl_command_queue* queues);

}  // namespace polder::api::command_buffer
