/* cl_ext_buffer_device_address 1.0.2, for systems whose CL/cl_ext.h is older. */
#ifndef CL_EXT_BUFFER_DEVICE_ADDRESS_H
#define CL_EXT_BUFFER_DEVICE_ADDRESS_H

#include <CL/cl_ext.h>

#ifndef cl_ext_buffer_device_address
#define cl_ext_buffer_device_address 1
#define CL_EXT_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME "cl_ext_buffer_device_address"

#ifdef __cplusplus
extern "C" {
#endif

/* An address in the memory of one device, as that device's kernels use it. */
typedef cl_ulong cl_mem_device_address_ext;

/* clCreateBufferWithProperties: cl_bool. On each device of the context, the buffer's address is constant during its lifetime. */
#define CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT 0x5000
/* clGetMemObjectInfo: cl_mem_device_address_ext[], one for each device of the context. */
#define CL_MEM_DEVICE_ADDRESS_EXT 0x5001
/* clSetKernelExecInfo: cl_mem_device_address_ext[], the buffers that the kernel accesses through such addresses. */
#define CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT 0x5002

typedef cl_int(CL_API_CALL* clSetKernelArgDevicePointerEXT_t)(cl_kernel kernel, cl_uint arg_index,
                                                              cl_mem_device_address_ext arg_value);
typedef clSetKernelArgDevicePointerEXT_t clSetKernelArgDevicePointerEXT_fn;

#ifdef __cplusplus
}
#endif

#endif
#endif
