// Entry points of the extensions that share objects with OpenGL, EGL and Direct3D, and of the old device
// fission: they are in the dispatch table. Polder makes no contexts or objects of these APIs, so each of the functions returns
// the error for an invalid context or object. Device fission calls the functions of OpenCL 1.2.
#include "entry.h"

#include <runtime/mem_object.h>
#include <runtime/queue.h>

using namespace polder;
using namespace polder::api;
using runtime::Context;
using runtime::Queue;

namespace {

// Returns CL_INVALID_CONTEXT: no context was made from another API.
template <class Handle>
Handle no_shared(cl_int* errcode_ret) {
    if (errcode_ret)
        *errcode_ret = CL_INVALID_CONTEXT;
    return nullptr;
}

cl_int not_shared(cl_mem object, cl_int code) {
    return from_handle<runtime::MemObject>(object) ? code : CL_INVALID_MEM_OBJECT;
}

cl_int no_shared_objects(cl_command_queue command_queue, cl_uint count, const cl_mem* objects) {
    // CL_INVALID_VALUE: num_objects is 0 and mem_objects is not null, or the other way round.
    if ((count == 0) != (objects == nullptr))
        return CL_INVALID_VALUE;
    if (!from_handle<Queue>(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    // CL_INVALID_CONTEXT: no context shares objects, so no object can belong to the queue's context. An empty list succeeds.
    return count == 0 ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

}  // namespace

CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLBuffer(cl_context, cl_mem_flags, cl_GLuint, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLTexture(cl_context, cl_mem_flags, cl_GLenum, cl_GLint, cl_GLuint,
                                                      cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLTexture2D(cl_context, cl_mem_flags, cl_GLenum, cl_GLint, cl_GLuint,
                                                        cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLTexture3D(cl_context, cl_mem_flags, cl_GLenum, cl_GLint, cl_GLuint,
                                                        cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLRenderbuffer(cl_context, cl_mem_flags, cl_GLuint, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
CL_API_ENTRY cl_int CL_API_CALL clGetGLObjectInfo(cl_mem memobj, cl_gl_object_type*, cl_GLuint*) {
    return not_shared(memobj, CL_INVALID_GL_OBJECT);
}
CL_API_ENTRY cl_int CL_API_CALL clGetGLTextureInfo(cl_mem memobj, cl_gl_texture_info, size_t, void*, size_t*) {
    return not_shared(memobj, CL_INVALID_GL_OBJECT);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueAcquireGLObjects(cl_command_queue command_queue, cl_uint num_objects,
                                                          const cl_mem* mem_objects, cl_uint, const cl_event*,
                                                          cl_event*) {
    return no_shared_objects(command_queue, num_objects, mem_objects);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueReleaseGLObjects(cl_command_queue command_queue, cl_uint num_objects,
                                                          const cl_mem* mem_objects, cl_uint, const cl_event*,
                                                          cl_event*) {
    return no_shared_objects(command_queue, num_objects, mem_objects);
}
CL_API_ENTRY cl_int CL_API_CALL clGetGLContextInfoKHR(const cl_context_properties*, cl_gl_context_info, size_t, void*,
                                                      size_t*) {
    return CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR;
}
CL_API_ENTRY cl_event CL_API_CALL clCreateEventFromGLsyncKHR(cl_context, cl_GLsync, cl_int* errcode_ret) {
    return no_shared<cl_event>(errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateFromEGLImageKHR(cl_context, CLeglDisplayKHR, CLeglImageKHR, cl_mem_flags,
                                                        const cl_egl_image_properties_khr*, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueAcquireEGLObjectsKHR(cl_command_queue command_queue, cl_uint num_objects,
                                                              const cl_mem* mem_objects, cl_uint, const cl_event*,
                                                              cl_event*) {
    return no_shared_objects(command_queue, num_objects, mem_objects);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueReleaseEGLObjectsKHR(cl_command_queue command_queue, cl_uint num_objects,
                                                              const cl_mem* mem_objects, cl_uint, const cl_event*,
                                                              cl_event*) {
    return no_shared_objects(command_queue, num_objects, mem_objects);
}
CL_API_ENTRY cl_event CL_API_CALL clCreateEventFromEGLSyncKHR(cl_context, CLeglSyncKHR, CLeglDisplayKHR,
                                                              cl_int* errcode_ret) {
    return no_shared<cl_event>(errcode_ret);
}

cl_int clGetDeviceIDsFromD3D10KHR() { return CL_DEVICE_NOT_FOUND; }
cl_mem clCreateFromD3D10BufferKHR(cl_context, cl_mem_flags, void*, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
cl_mem clCreateFromD3D10Texture2DKHR(cl_context, cl_mem_flags, void*, cl_uint, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
cl_mem clCreateFromD3D10Texture3DKHR(cl_context, cl_mem_flags, void*, cl_uint, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
cl_int clEnqueueAcquireD3D10ObjectsKHR() { return CL_INVALID_OPERATION; }
cl_int clEnqueueReleaseD3D10ObjectsKHR() { return CL_INVALID_OPERATION; }
cl_int clGetDeviceIDsFromD3D11KHR() { return CL_DEVICE_NOT_FOUND; }
cl_mem clCreateFromD3D11BufferKHR(cl_context, cl_mem_flags, void*, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
cl_mem clCreateFromD3D11Texture2DKHR(cl_context, cl_mem_flags, void*, cl_uint, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
cl_mem clCreateFromD3D11Texture3DKHR(cl_context, cl_mem_flags, void*, cl_uint, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
cl_mem clCreateFromDX9MediaSurfaceKHR(cl_context, cl_mem_flags, cl_uint, void*, cl_uint, cl_int* errcode_ret) {
    return no_shared<cl_mem>(errcode_ret);
}
cl_int clEnqueueAcquireD3D11ObjectsKHR() { return CL_INVALID_OPERATION; }
cl_int clEnqueueReleaseD3D11ObjectsKHR() { return CL_INVALID_OPERATION; }
cl_int clGetDeviceIDsFromDX9MediaAdapterKHR() { return CL_DEVICE_NOT_FOUND; }
cl_int clEnqueueAcquireDX9MediaSurfacesKHR() { return CL_INVALID_OPERATION; }
cl_int clEnqueueReleaseDX9MediaSurfacesKHR() { return CL_INVALID_OPERATION; }

CL_API_ENTRY cl_int CL_API_CALL clCreateSubDevicesEXT(cl_device_id in_device, const cl_device_partition_property_ext*,
                                                      cl_uint, cl_device_id*, cl_uint*) {
    return from_handle<runtime::Device>(in_device) ? CL_INVALID_VALUE : CL_INVALID_DEVICE;
}
CL_API_ENTRY cl_int CL_API_CALL clRetainDeviceEXT(cl_device_id device) { return clRetainDevice(device); }
CL_API_ENTRY cl_int CL_API_CALL clReleaseDeviceEXT(cl_device_id device) { return clReleaseDevice(device); }
