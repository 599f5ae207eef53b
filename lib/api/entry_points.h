// The entry points of OpenCL 3.1, in the order of the ICD's dispatch table.
//
// An entry point is defined under its own name (`CL_API_ENTRY cl_int CL_API_CALL clFinish(...)`), declared by the
// Khronos headers, in the file of its family. The names stay inside the library (hidden visibility and the
// version script), so they never collide with the loader's.
//
// The dispatch table is filled from one list, in which clGetExtensionFunctionAddressForPlatform
// searches, too. Functions that have no place in the dispatch table of older headers are in `POLDER_EXTENSION_FUNCTIONS`: those
// of extensions, and OpenCL 3.1's.
#pragma once

#include <CL/cl.h>
#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
#include <CL/cl_ext_buffer_device_address.h>
#include <CL/cl_ext_polder.h>
#include <CL/cl_gl.h>
#include <CL/cl_icd.h>

// X(name): an entry point of OpenCL itself.
// A(name): an entry point of an extension that Polder does not have: it is in the dispatch table, returns an
// error, and is not found by name.
#define POLDER_ENTRY_POINTS(X, A)                                                                                      \
    X(clGetPlatformIDs)                                                                                                \
    X(clGetPlatformInfo)                                                                                               \
    X(clGetDeviceIDs)                                                                                                  \
    X(clGetDeviceInfo)                                                                                                 \
    X(clCreateContext)                                                                                                 \
    X(clCreateContextFromType)                                                                                         \
    X(clRetainContext)                                                                                                 \
    X(clReleaseContext)                                                                                                \
    X(clGetContextInfo)                                                                                                \
    X(clCreateCommandQueue)                                                                                            \
    X(clRetainCommandQueue)                                                                                            \
    X(clReleaseCommandQueue)                                                                                           \
    X(clGetCommandQueueInfo)                                                                                           \
    X(clSetCommandQueueProperty)                                                                                       \
    X(clCreateBuffer)                                                                                                  \
    X(clCreateImage2D)                                                                                                 \
    X(clCreateImage3D)                                                                                                 \
    X(clRetainMemObject)                                                                                               \
    X(clReleaseMemObject)                                                                                              \
    X(clGetSupportedImageFormats)                                                                                      \
    X(clGetMemObjectInfo)                                                                                              \
    X(clGetImageInfo)                                                                                                  \
    X(clCreateSampler)                                                                                                 \
    X(clRetainSampler)                                                                                                 \
    X(clReleaseSampler)                                                                                                \
    X(clGetSamplerInfo)                                                                                                \
    X(clCreateProgramWithSource)                                                                                       \
    X(clCreateProgramWithBinary)                                                                                       \
    X(clRetainProgram)                                                                                                 \
    X(clReleaseProgram)                                                                                                \
    X(clBuildProgram)                                                                                                  \
    X(clUnloadCompiler)                                                                                                \
    X(clGetProgramInfo)                                                                                                \
    X(clGetProgramBuildInfo)                                                                                           \
    X(clCreateKernel)                                                                                                  \
    X(clCreateKernelsInProgram)                                                                                        \
    X(clRetainKernel)                                                                                                  \
    X(clReleaseKernel)                                                                                                 \
    X(clSetKernelArg)                                                                                                  \
    X(clGetKernelInfo)                                                                                                 \
    X(clGetKernelWorkGroupInfo)                                                                                        \
    X(clWaitForEvents)                                                                                                 \
    X(clGetEventInfo)                                                                                                  \
    X(clRetainEvent)                                                                                                   \
    X(clReleaseEvent)                                                                                                  \
    X(clGetEventProfilingInfo)                                                                                         \
    X(clFlush)                                                                                                         \
    X(clFinish)                                                                                                        \
    X(clEnqueueReadBuffer)                                                                                             \
    X(clEnqueueWriteBuffer)                                                                                            \
    X(clEnqueueCopyBuffer)                                                                                             \
    X(clEnqueueReadImage)                                                                                              \
    X(clEnqueueWriteImage)                                                                                             \
    X(clEnqueueCopyImage)                                                                                              \
    X(clEnqueueCopyImageToBuffer)                                                                                      \
    X(clEnqueueCopyBufferToImage)                                                                                      \
    X(clEnqueueMapBuffer)                                                                                              \
    X(clEnqueueMapImage)                                                                                               \
    X(clEnqueueUnmapMemObject)                                                                                         \
    X(clEnqueueNDRangeKernel)                                                                                          \
    X(clEnqueueTask)                                                                                                   \
    X(clEnqueueNativeKernel)                                                                                           \
    X(clEnqueueMarker)                                                                                                 \
    X(clEnqueueWaitForEvents)                                                                                          \
    X(clEnqueueBarrier)                                                                                                \
    X(clGetExtensionFunctionAddress)                                                                                   \
    A(clCreateFromGLBuffer)                                                                                            \
    A(clCreateFromGLTexture2D)                                                                                         \
    A(clCreateFromGLTexture3D)                                                                                         \
    A(clCreateFromGLRenderbuffer)                                                                                      \
    A(clGetGLObjectInfo)                                                                                               \
    A(clGetGLTextureInfo)                                                                                              \
    A(clEnqueueAcquireGLObjects)                                                                                       \
    A(clEnqueueReleaseGLObjects)                                                                                       \
    A(clGetGLContextInfoKHR)                                                                                           \
    A(clGetDeviceIDsFromD3D10KHR)                                                                                      \
    A(clCreateFromD3D10BufferKHR)                                                                                      \
    A(clCreateFromD3D10Texture2DKHR)                                                                                   \
    A(clCreateFromD3D10Texture3DKHR)                                                                                   \
    A(clEnqueueAcquireD3D10ObjectsKHR)                                                                                 \
    A(clEnqueueReleaseD3D10ObjectsKHR)                                                                                 \
    X(clSetEventCallback)                                                                                              \
    X(clCreateSubBuffer)                                                                                               \
    X(clSetMemObjectDestructorCallback)                                                                                \
    X(clCreateUserEvent)                                                                                               \
    X(clSetUserEventStatus)                                                                                            \
    X(clEnqueueReadBufferRect)                                                                                         \
    X(clEnqueueWriteBufferRect)                                                                                        \
    X(clEnqueueCopyBufferRect)                                                                                         \
    A(clCreateSubDevicesEXT)                                                                                           \
    A(clRetainDeviceEXT)                                                                                               \
    A(clReleaseDeviceEXT)                                                                                              \
    A(clCreateEventFromGLsyncKHR)                                                                                      \
    X(clCreateSubDevices)                                                                                              \
    X(clRetainDevice)                                                                                                  \
    X(clReleaseDevice)                                                                                                 \
    X(clCreateImage)                                                                                                   \
    X(clCreateProgramWithBuiltInKernels)                                                                               \
    X(clCompileProgram)                                                                                                \
    X(clLinkProgram)                                                                                                   \
    X(clUnloadPlatformCompiler)                                                                                        \
    X(clGetKernelArgInfo)                                                                                              \
    X(clEnqueueFillBuffer)                                                                                             \
    X(clEnqueueFillImage)                                                                                              \
    X(clEnqueueMigrateMemObjects)                                                                                      \
    X(clEnqueueMarkerWithWaitList)                                                                                     \
    X(clEnqueueBarrierWithWaitList)                                                                                    \
    X(clGetExtensionFunctionAddressForPlatform)                                                                        \
    A(clCreateFromGLTexture)                                                                                           \
    A(clGetDeviceIDsFromD3D11KHR)                                                                                      \
    A(clCreateFromD3D11BufferKHR)                                                                                      \
    A(clCreateFromD3D11Texture2DKHR)                                                                                   \
    A(clCreateFromD3D11Texture3DKHR)                                                                                   \
    A(clCreateFromDX9MediaSurfaceKHR)                                                                                  \
    A(clEnqueueAcquireD3D11ObjectsKHR)                                                                                 \
    A(clEnqueueReleaseD3D11ObjectsKHR)                                                                                 \
    A(clGetDeviceIDsFromDX9MediaAdapterKHR)                                                                            \
    A(clEnqueueAcquireDX9MediaSurfacesKHR)                                                                             \
    A(clEnqueueReleaseDX9MediaSurfacesKHR)                                                                             \
    A(clCreateFromEGLImageKHR)                                                                                         \
    A(clEnqueueAcquireEGLObjectsKHR)                                                                                   \
    A(clEnqueueReleaseEGLObjectsKHR)                                                                                   \
    A(clCreateEventFromEGLSyncKHR)                                                                                     \
    X(clCreateCommandQueueWithProperties)                                                                              \
    X(clCreatePipe)                                                                                                    \
    X(clGetPipeInfo)                                                                                                   \
    X(clSVMAlloc)                                                                                                      \
    X(clSVMFree)                                                                                                       \
    X(clEnqueueSVMFree)                                                                                                \
    X(clEnqueueSVMMemcpy)                                                                                              \
    X(clEnqueueSVMMemFill)                                                                                             \
    X(clEnqueueSVMMap)                                                                                                 \
    X(clEnqueueSVMUnmap)                                                                                               \
    X(clCreateSamplerWithProperties)                                                                                   \
    X(clSetKernelArgSVMPointer)                                                                                        \
    X(clSetKernelExecInfo)                                                                                             \
    X(clGetKernelSubGroupInfoKHR)                                                                                      \
    X(clCloneKernel)                                                                                                   \
    X(clCreateProgramWithIL)                                                                                           \
    X(clEnqueueSVMMigrateMem)                                                                                          \
    X(clGetDeviceAndHostTimer)                                                                                         \
    X(clGetHostTimer)                                                                                                  \
    X(clGetKernelSubGroupInfo)                                                                                         \
    X(clSetDefaultDeviceCommandQueue)                                                                                  \
    X(clSetProgramReleaseCallback)                                                                                     \
    X(clSetProgramSpecializationConstant)                                                                              \
    X(clCreateBufferWithProperties)                                                                                    \
    X(clCreateImageWithProperties)                                                                                     \
    X(clSetContextDestructorCallback)

// Functions that are not in the dispatch table of OpenCL 3.0: those of OpenCL 3.1, and those of the extensions in the platform's
// list.
#define POLDER_EXTENSION_FUNCTIONS(X)                                                                                  \
    X(clGetKernelSuggestedLocalWorkSize)                                                                               \
    X(clIcdGetPlatformIDsKHR)                                                                                          \
    X(clCreateCommandQueueWithPropertiesKHR)                                                                           \
    X(clCreateProgramWithILKHR)                                                                                        \
    X(clGetKernelSuggestedLocalWorkSizeKHR)                                                                            \
    X(clGetImageRequirementsInfoEXT)                                                                                   \
    X(clGetMemorySpacesPOLDER)                                                                                         \
    X(clGetMemoryTransfersPOLDER)                                                                                      \
    X(clGetMemoryStatisticsPOLDER)                                                                                     \
    X(clGetMemoryBudgetsPOLDER)                                                                                        \
    X(clResetMemoryPeaksPOLDER)                                                                                        \
    X(clTrimMemoryPOLDER)                                                                                              \
    X(clSetKernelArgDevicePointerEXT)                                                                                  \
    X(clHostMemAllocINTEL)                                                                                             \
    X(clDeviceMemAllocINTEL)                                                                                           \
    X(clSharedMemAllocINTEL)                                                                                           \
    X(clMemFreeINTEL)                                                                                                  \
    X(clMemBlockingFreeINTEL)                                                                                          \
    X(clGetMemAllocInfoINTEL)                                                                                          \
    X(clSetKernelArgMemPointerINTEL)                                                                                   \
    X(clEnqueueMemFillINTEL)                                                                                           \
    X(clEnqueueMemcpyINTEL)                                                                                            \
    X(clEnqueueMigrateMemINTEL)                                                                                        \
    X(clEnqueueMemAdviseINTEL)                                                                                         \
    X(clCreateSemaphoreWithPropertiesKHR)                                                                              \
    X(clEnqueueAcquireExternalMemObjectsKHR)                                                                           \
    X(clEnqueueReleaseExternalMemObjectsKHR)                                                                           \
    X(clEnqueueWaitSemaphoresKHR)                                                                                      \
    X(clEnqueueSignalSemaphoresKHR)                                                                                    \
    X(clGetSemaphoreInfoKHR)                                                                                           \
    X(clGetSemaphoreHandleForTypeKHR)                                                                                  \
    X(clRetainSemaphoreKHR)                                                                                            \
    X(clReleaseSemaphoreKHR)

// OpenCL 3.1's, which headers of 3.0 do not declare.
extern "C" cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSize(cl_command_queue command_queue, cl_kernel kernel,
                                                                cl_uint work_dim, const size_t* global_work_offset,
                                                                const size_t* global_work_size,
                                                                size_t* suggested_local_work_size);

// CL/cl_ext_buffer_device_address.h gives its type.
extern "C" {
cl_int CL_API_CALL clSetKernelArgDevicePointerEXT(cl_kernel kernel, cl_uint arg_index,
                                                  cl_mem_device_address_ext arg_value);
}

// Polder's own: CL/cl_ext_polder.h gives their types.
extern "C" {
cl_int CL_API_CALL clGetMemorySpacesPOLDER(cl_context context, cl_uint num_entries, cl_memory_space_polder* entries,
                                           cl_uint* num_entries_ret);
cl_int CL_API_CALL clGetMemoryTransfersPOLDER(cl_context context, cl_uint num_entries,
                                              cl_memory_transfers_polder* entries, cl_uint* num_entries_ret);
cl_int CL_API_CALL clGetMemoryStatisticsPOLDER(cl_context context, cl_uint num_entries,
                                               cl_memory_statistics_polder* entries, cl_uint* num_entries_ret);
cl_int CL_API_CALL clGetMemoryBudgetsPOLDER(cl_context context, cl_uint num_entries, cl_memory_budget_polder* entries,
                                            cl_uint* num_entries_ret);
cl_int CL_API_CALL clResetMemoryPeaksPOLDER(cl_context context, cl_uint space, cl_memory_peaks_polder peaks);
cl_int CL_API_CALL clTrimMemoryPOLDER(cl_context context, cl_uint space);
}

// Declared by no header of this platform: their types are those of Direct3D.
extern "C" {
cl_int clGetDeviceIDsFromD3D10KHR();
cl_mem clCreateFromD3D10BufferKHR(cl_context context, cl_mem_flags flags, void* resource, cl_int* errcode_ret);
cl_mem clCreateFromD3D10Texture2DKHR(cl_context context, cl_mem_flags flags, void* resource, cl_uint subresource,
                                     cl_int* errcode_ret);
cl_mem clCreateFromD3D10Texture3DKHR(cl_context context, cl_mem_flags flags, void* resource, cl_uint subresource,
                                     cl_int* errcode_ret);
cl_int clEnqueueAcquireD3D10ObjectsKHR();
cl_int clEnqueueReleaseD3D10ObjectsKHR();
cl_int clGetDeviceIDsFromD3D11KHR();
cl_mem clCreateFromD3D11BufferKHR(cl_context context, cl_mem_flags flags, void* resource, cl_int* errcode_ret);
cl_mem clCreateFromD3D11Texture2DKHR(cl_context context, cl_mem_flags flags, void* resource, cl_uint subresource,
                                     cl_int* errcode_ret);
cl_mem clCreateFromD3D11Texture3DKHR(cl_context context, cl_mem_flags flags, void* resource, cl_uint subresource,
                                     cl_int* errcode_ret);
cl_mem clCreateFromDX9MediaSurfaceKHR(cl_context context, cl_mem_flags flags, cl_uint adapter_type, void* surface_info,
                                      cl_uint plane, cl_int* errcode_ret);
cl_int clEnqueueAcquireD3D11ObjectsKHR();
cl_int clEnqueueReleaseD3D11ObjectsKHR();
cl_int clGetDeviceIDsFromDX9MediaAdapterKHR();
cl_int clEnqueueAcquireDX9MediaSurfacesKHR();
cl_int clEnqueueReleaseDX9MediaSurfacesKHR();
}
