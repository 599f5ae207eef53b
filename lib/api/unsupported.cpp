// Entry points of what OpenCL 3.0 makes optional and Polder does not have: images, samplers, pipes. They check what
// comes before the object that cannot exist, and then say that it does not.
#include "enqueue.h"
#include "mem_flags.h"

#include <runtime/mem_object.h>

using namespace polder;
using namespace polder::api;
using runtime::Context;
using runtime::MemObject;
using runtime::Queue;

namespace {

// No device of the context supports it.
template <class Handle>
Handle unsupported(cl_context context, cl_int* errcode_ret, const char* function = __builtin_FUNCTION()) {
    return create<Handle>(
        errcode_ret,
        [&]() -> Result<Handle> {
            POLDER_TRY(from_handle<Context>(context));
            return fail(Status::invalid_operation);
        },
        function);
}

// A command on an image: no handle can be a valid image.
cl_int no_image(cl_command_queue queue, const char* function = __builtin_FUNCTION()) {
    return entry(
        [&]() -> Result<void> {
            POLDER_TRY(from_handle<Queue>(queue));
            return fail(Status::invalid_mem_object);
        },
        function);
}

bool is_image_type(cl_mem_object_type type) {
    return type >= CL_MEM_OBJECT_IMAGE2D && type <= CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

} // namespace

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags, const cl_image_format*,
                                              const cl_image_desc*, void*, cl_int* errcode_ret) {
    return unsupported<cl_mem>(context, errcode_ret);
}
CL_API_ENTRY cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context, const cl_mem_properties*, cl_mem_flags,
                                                            const cl_image_format*, const cl_image_desc*, void*,
                                                            cl_int* errcode_ret) {
    return unsupported<cl_mem>(context, errcode_ret);
}
CL_API_ENTRY cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags, const cl_image_format*, size_t,
                                                size_t, size_t, void*, cl_int* errcode_ret) {
    return unsupported<cl_mem>(context, errcode_ret);
}
CL_API_ENTRY cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags, const cl_image_format*, size_t,
                                                size_t, size_t, size_t, size_t, void*, cl_int* errcode_ret) {
    return unsupported<cl_mem>(context, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetSupportedImageFormats(cl_context context, cl_mem_flags flags,
                                                           cl_mem_object_type image_type, cl_uint num_entries,
                                                           cl_image_format* image_formats, cl_uint* num_image_formats) {
    return entry([&]() -> Result<void> {
        POLDER_TRY(from_handle<Context>(context));
        // No such kind of image, or room for no format.
        if (!is_image_type(image_type) || (image_formats && num_entries == 0))
            return fail(Status::invalid_value);
        // The flag that only this call knows goes with any other.
        POLDER_TRY(check_flags(flags & ~cl_mem_flags{CL_MEM_KERNEL_READ_AND_WRITE}));
        if (num_image_formats)
            *num_image_formats = 0;
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetImageInfo(cl_mem, cl_image_info, size_t, void*, size_t*) {
    return CL_INVALID_MEM_OBJECT;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadImage(cl_command_queue queue, cl_mem, cl_bool, const size_t*,
                                                   const size_t*, size_t, size_t, void*, cl_uint, const cl_event*,
                                                   cl_event*) {
    return no_image(queue);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteImage(cl_command_queue queue, cl_mem, cl_bool, const size_t*,
                                                    const size_t*, size_t, size_t, const void*, cl_uint,
                                                    const cl_event*, cl_event*) {
    return no_image(queue);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImage(cl_command_queue queue, cl_mem, cl_mem, const size_t*, const size_t*,
                                                   const size_t*, cl_uint, const cl_event*, cl_event*) {
    return no_image(queue);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem, cl_mem, const size_t*,
                                                           const size_t*, size_t, cl_uint, const cl_event*, cl_event*) {
    return no_image(queue);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem, cl_mem, size_t,
                                                           const size_t*, const size_t*, cl_uint, const cl_event*,
                                                           cl_event*) {
    return no_image(queue);
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillImage(cl_command_queue queue, cl_mem, const void*, const size_t*,
                                                   const size_t*, cl_uint, const cl_event*, cl_event*) {
    return no_image(queue);
}
CL_API_ENTRY void* CL_API_CALL clEnqueueMapImage(cl_command_queue queue, cl_mem, cl_bool, cl_map_flags, const size_t*,
                                                 const size_t*, size_t*, size_t*, cl_uint, const cl_event*, cl_event*,
                                                 cl_int* errcode_ret) {
    const cl_int code = no_image(queue);
    if (errcode_ret)
        *errcode_ret = code;
    return nullptr;
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSampler(cl_context context, cl_bool, cl_addressing_mode, cl_filter_mode,
                                                    cl_int* errcode_ret) {
    return unsupported<cl_sampler>(context, errcode_ret);
}
CL_API_ENTRY cl_sampler CL_API_CALL clCreateSamplerWithProperties(cl_context context, const cl_sampler_properties*,
                                                                  cl_int* errcode_ret) {
    return unsupported<cl_sampler>(context, errcode_ret);
}
CL_API_ENTRY cl_int CL_API_CALL clRetainSampler(cl_sampler) { return CL_INVALID_SAMPLER; }
CL_API_ENTRY cl_int CL_API_CALL clReleaseSampler(cl_sampler) { return CL_INVALID_SAMPLER; }
CL_API_ENTRY cl_int CL_API_CALL clGetSamplerInfo(cl_sampler, cl_sampler_info, size_t, void*, size_t*) {
    return CL_INVALID_SAMPLER;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags, cl_uint, cl_uint,
                                             const cl_pipe_properties*, cl_int* errcode_ret) {
    return unsupported<cl_mem>(context, errcode_ret);
}
CL_API_ENTRY cl_int CL_API_CALL clGetPipeInfo(cl_mem, cl_pipe_info, size_t, void*, size_t*) {
    return CL_INVALID_MEM_OBJECT;
}
