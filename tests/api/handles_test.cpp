// A null, a released, a foreign handle, and one of another kind: each entry point that takes a handle returns its
// error code. The functions are Polder's own, by address: a loader would check some of the null ones itself.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <initializer_list>

namespace polder::test {
namespace {

template <class Function>
Function* of_polder(const char* name) {
    void* const found = clGetExtensionFunctionAddressForPlatform(platform(), name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Function*>(found);
}

// The handle under test, as whichever type the function wants.
struct Handle {
    void* pointer;
    template <class T>
    operator T*() const {
        return static_cast<T*>(pointer);
    }
};

// All other arguments of the calls are valid.
struct Live {
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    cl_mem buffer;
    cl_program program;
    cl_kernel kernel;
};
Live live;
constexpr size_t one = 1;
constexpr size_t region[3] = {1, 1, 1};
constexpr size_t origin[3] = {};
char bytes[64];
const char* const source = "kernel void k(global int* a) {}";
const char* text = source;
const unsigned char byte = 0;
const unsigned char* binary = &byte;
cl_uint count;
cl_ulong time_ns;
cl_event given;

struct Call {
    const char* function;
    cl_int (*answer)(Handle h);
};
#define CALL(function, ...)                                                                                            \
    Call {                                                                                                             \
        #function, [](Handle h) { return of_polder<decltype(function)>(#function)(__VA_ARGS__); }                      \
    }
// Functions that return an object and report the error through their last argument.
#define MAKE(function, ...)                                                                                            \
    Call {                                                                                                             \
        #function, [](Handle h) {                                                                                      \
            cl_int made_error = CL_SUCCESS;                                                                            \
            EXPECT_EQ(of_polder<decltype(function)>(#function)(__VA_ARGS__, &made_error), nullptr);                    \
            return made_error;                                                                                         \
        }                                                                                                              \
    }

class Handles : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        buffer_ = make_buffer(64);
        program_ = build(source);
        kernel_ = make_kernel(program_, "k");
        ASSERT_EQ(clSetKernelArg(kernel_, 0, sizeof(cl_mem), buffer_.in()), CL_SUCCESS);
        live = {context, devices[0], queue, buffer_, program_, kernel_};
    }

    // A null handle, a pointer that never was a handle, and `others`: handles of another kind, or released.
    void expect_refused(cl_int code, std::initializer_list<void*> others, std::initializer_list<Call> calls) {
        std::vector<void*> handles = {nullptr, foreign_handle<void*>(context)};
        handles.insert(handles.end(), others);
        for (const Call& call : calls)
            for (size_t i = 0; i < handles.size(); ++i)
                EXPECT_EQ(call.answer(Handle{handles[i]}), code) << call.function << ", handle " << i;
    }

    OwnedMem buffer_;
    OwnedProgram program_;
    OwnedKernel kernel_;
};

TEST_F(Handles, OfPlatforms) {
    // A null platform means Polder's, except where the specification forbids it.
    EXPECT_EQ(of_polder<decltype(clUnloadPlatformCompiler)>("clUnloadPlatformCompiler")(nullptr), CL_INVALID_PLATFORM);
    for (void* const wrong : {foreign_handle<void*>(context), static_cast<void*>(live.context)}) {
        const auto platform = static_cast<cl_platform_id>(wrong);
        EXPECT_EQ(of_polder<decltype(clGetPlatformInfo)>("clGetPlatformInfo")(platform, CL_PLATFORM_NAME, 0, nullptr,
                                                                              nullptr),
                  CL_INVALID_PLATFORM);
        EXPECT_EQ(
            of_polder<decltype(clGetDeviceIDs)>("clGetDeviceIDs")(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count),
            CL_INVALID_PLATFORM);
        EXPECT_EQ(of_polder<decltype(clUnloadPlatformCompiler)>("clUnloadPlatformCompiler")(platform),
                  CL_INVALID_PLATFORM);
        EXPECT_EQ(of_polder<decltype(clGetExtensionFunctionAddressForPlatform)>(
                      "clGetExtensionFunctionAddressForPlatform")(platform, "clFinish"),
                  nullptr);
    }
}

TEST_F(Handles, OfDevices) {
    const auto by_one = [](Handle h, cl_device_id* made) {
        const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
        return of_polder<decltype(clCreateSubDevices)>("clCreateSubDevices")(h, equally, made ? 64 : 0, made, &count);
    };
    std::vector<cl_device_id> parts(64);
    void* released = live.context;
    if (by_one(Handle{live.device}, nullptr) == CL_SUCCESS && count <= parts.size()) {
        ASSERT_EQ(by_one(Handle{live.device}, parts.data()), CL_SUCCESS);
        for (cl_uint i = 0; i < count; ++i)
            ASSERT_EQ(clReleaseDevice(parts[i]), CL_SUCCESS);
        released = parts[0];
    }
    expect_refused(CL_INVALID_DEVICE, {live.context, released},
                   {
                       CALL(clGetDeviceInfo, h, CL_DEVICE_TYPE, 0, nullptr, nullptr),
                       CALL(clRetainDevice, h),
                       CALL(clReleaseDevice, h),
                       CALL(clGetDeviceAndHostTimer, h, &time_ns, &time_ns),
                       CALL(clGetHostTimer, h, &time_ns),
                       MAKE(clCreateCommandQueue, live.context, h, 0),
                       MAKE(clCreateCommandQueueWithProperties, live.context, h, nullptr),
                       MAKE(clCreateCommandQueueWithPropertiesKHR, live.context, h, nullptr),
                       CALL(clSetDefaultDeviceCommandQueue, live.context, h, live.queue),
                       CALL(clGetProgramBuildInfo, live.program, h, CL_PROGRAM_BUILD_STATUS, 0, nullptr, nullptr),
                   });
    for (void* const wrong : {foreign_handle<void*>(context), released, static_cast<void*>(nullptr)}) {
        EXPECT_EQ(by_one(Handle{wrong}, nullptr), CL_INVALID_DEVICE);
        const auto listed = static_cast<cl_device_id>(wrong);
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clCreateContext(nullptr, 1, &listed, nullptr, nullptr, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_DEVICE);
        EXPECT_EQ(clBuildProgram(live.program, 1, &listed, "", nullptr, nullptr), CL_INVALID_DEVICE);
        EXPECT_EQ(clCompileProgram(live.program, 1, &listed, "", 0, nullptr, nullptr, nullptr, nullptr),
                  CL_INVALID_DEVICE);
        EXPECT_EQ(clLinkProgram(context, 1, &listed, "", 1, program_.in(), nullptr, nullptr, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_DEVICE);
        EXPECT_EQ(clCreateProgramWithBinary(context, 1, &listed, &one, &binary, nullptr, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_DEVICE);
        EXPECT_EQ(clCreateProgramWithBuiltInKernels(context, 1, &listed, "k", &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_DEVICE);
        if (!wrong)
            continue;  // where null may mean the only device
        EXPECT_EQ(clGetKernelWorkGroupInfo(live.kernel, listed, CL_KERNEL_WORK_GROUP_SIZE, 0, nullptr, nullptr),
                  CL_INVALID_DEVICE);
        EXPECT_EQ(
            clGetKernelSubGroupInfo(live.kernel, listed, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, nullptr, 0, nullptr, nullptr),
            CL_INVALID_DEVICE);
    }
}

TEST_F(Handles, OfContexts) {
    cl_int error = CL_INVALID_VALUE;
    const cl_context released_handle = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(clReleaseContext(released_handle), CL_SUCCESS);
    static const auto note = [](cl_context, void*) {};
    static cl_image_format format{CL_RGBA, CL_UNORM_INT8};
    static cl_image_desc description{};
    expect_refused(
        CL_INVALID_CONTEXT, {live.queue, released_handle},
        {
            CALL(clRetainContext, h),
            CALL(clReleaseContext, h),
            CALL(clGetContextInfo, h, CL_CONTEXT_NUM_DEVICES, 0, nullptr, nullptr),
            CALL(clSetContextDestructorCallback, h, note, nullptr),
            MAKE(clCreateCommandQueue, h, live.device, 0),
            MAKE(clCreateCommandQueueWithProperties, h, live.device, nullptr),
            MAKE(clCreateCommandQueueWithPropertiesKHR, h, live.device, nullptr),
            CALL(clSetDefaultDeviceCommandQueue, h, live.device, live.queue),
            MAKE(clCreateBuffer, h, CL_MEM_READ_WRITE, 64, nullptr),
            MAKE(clCreateBufferWithProperties, h, nullptr, CL_MEM_READ_WRITE, 64, nullptr),
            MAKE(clCreateImage, h, 0, &format, &description, nullptr),
            MAKE(clCreateImageWithProperties, h, nullptr, 0, &format, &description, nullptr),
            MAKE(clCreateImage2D, h, 0, &format, 4, 4, 0, nullptr),
            MAKE(clCreateImage3D, h, 0, &format, 4, 4, 4, 0, 0, nullptr),
            CALL(clGetSupportedImageFormats, h, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count),
            MAKE(clCreateSampler, h, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST),
            MAKE(clCreateSamplerWithProperties, h, nullptr),
            MAKE(clCreatePipe, h, 0, 4, 4, nullptr),
            MAKE(clCreateProgramWithSource, h, 1, &text, nullptr),
            MAKE(clCreateProgramWithBinary, h, 1, &live.device, &one, &binary, nullptr),
            MAKE(clCreateProgramWithBuiltInKernels, h, 1, &live.device, "k"),
            MAKE(clCreateProgramWithIL, h, bytes, sizeof bytes),
            MAKE(clLinkProgram, h, 0, nullptr, "", 1, &live.program, nullptr, nullptr),
            MAKE(clCreateUserEvent, h),
        });
    for (void* const wrong :
         {static_cast<void*>(nullptr), foreign_handle<void*>(context), static_cast<void*>(released_handle)}) {
        EXPECT_EQ(of_polder<decltype(clSVMAlloc)>("clSVMAlloc")(static_cast<cl_context>(wrong), 0, 64, 0), nullptr);
        of_polder<decltype(clSVMFree)>("clSVMFree")(static_cast<cl_context>(wrong), bytes);
    }
}

TEST_F(Handles, OfQueues) {
    cl_int error = CL_INVALID_VALUE;
    const cl_command_queue released_handle = clCreateCommandQueueWithProperties(context, devices[0], nullptr, &error);
    ASSERT_EQ(clReleaseCommandQueue(released_handle), CL_SUCCESS);
    static const auto native = [](void*) {};
    static size_t pitch;
    static void* pointers[] = {bytes};
    static const void* const_pointers[] = {bytes};
    expect_refused(
        CL_INVALID_COMMAND_QUEUE, {live.context, released_handle},
        {
            CALL(clRetainCommandQueue, h),
            CALL(clReleaseCommandQueue, h),
            CALL(clGetCommandQueueInfo, h, CL_QUEUE_CONTEXT, 0, nullptr, nullptr),
            CALL(clSetCommandQueueProperty, h, 0, CL_TRUE, nullptr),
            CALL(clFlush, h),
            CALL(clFinish, h),
            CALL(clEnqueueReadBuffer, h, live.buffer, CL_TRUE, 0, 4, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueWriteBuffer, h, live.buffer, CL_TRUE, 0, 4, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueReadBufferRect, h, live.buffer, CL_TRUE, origin, origin, region, 0, 0, 0, 0, bytes, 0,
                 nullptr, nullptr),
            CALL(clEnqueueWriteBufferRect, h, live.buffer, CL_TRUE, origin, origin, region, 0, 0, 0, 0, bytes, 0,
                 nullptr, nullptr),
            CALL(clEnqueueCopyBuffer, h, live.buffer, live.buffer, 0, 8, 4, 0, nullptr, nullptr),
            CALL(clEnqueueCopyBufferRect, h, live.buffer, live.buffer, origin, region, region, 8, 8, 8, 8, 0, nullptr,
                 nullptr),
            CALL(clEnqueueFillBuffer, h, live.buffer, bytes, 4, 0, 4, 0, nullptr, nullptr),
            MAKE(clEnqueueMapBuffer, h, live.buffer, CL_TRUE, CL_MAP_READ, 0, 4, 0, nullptr, nullptr),
            CALL(clEnqueueUnmapMemObject, h, live.buffer, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueMigrateMemObjects, h, 1, &live.buffer, 0, 0, nullptr, nullptr),
            CALL(clEnqueueReadImage, h, live.buffer, CL_TRUE, origin, region, 0, 0, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueWriteImage, h, live.buffer, CL_TRUE, origin, region, 0, 0, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueCopyImage, h, live.buffer, live.buffer, origin, origin, region, 0, nullptr, nullptr),
            CALL(clEnqueueCopyImageToBuffer, h, live.buffer, live.buffer, origin, region, 0, 0, nullptr, nullptr),
            CALL(clEnqueueCopyBufferToImage, h, live.buffer, live.buffer, 0, origin, region, 0, nullptr, nullptr),
            CALL(clEnqueueFillImage, h, live.buffer, bytes, origin, region, 0, nullptr, nullptr),
            MAKE(clEnqueueMapImage, h, live.buffer, CL_TRUE, CL_MAP_READ, origin, region, &pitch, nullptr, 0, nullptr,
                 nullptr),
            CALL(clEnqueueNDRangeKernel, h, live.kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
            CALL(clEnqueueTask, h, live.kernel, 0, nullptr, nullptr),
            CALL(clEnqueueNativeKernel, h, native, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, nullptr),
            CALL(clEnqueueMarker, h, &given),
            CALL(clEnqueueWaitForEvents, h, 1, &given),
            CALL(clEnqueueBarrier, h),
            CALL(clEnqueueMarkerWithWaitList, h, 0, nullptr, nullptr),
            CALL(clEnqueueBarrierWithWaitList, h, 0, nullptr, nullptr),
            CALL(clEnqueueSVMFree, h, 1, pointers, nullptr, nullptr, 0, nullptr, nullptr),
            CALL(clEnqueueSVMMemcpy, h, CL_TRUE, bytes, bytes + 8, 4, 0, nullptr, nullptr),
            CALL(clEnqueueSVMMemFill, h, bytes, bytes + 8, 4, 4, 0, nullptr, nullptr),
            CALL(clEnqueueSVMMap, h, CL_TRUE, CL_MAP_READ, bytes, 4, 0, nullptr, nullptr),
            CALL(clEnqueueSVMUnmap, h, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueSVMMigrateMem, h, 1, const_pointers, nullptr, 0, 0, nullptr, nullptr),
            CALL(clGetKernelSuggestedLocalWorkSizeKHR, h, live.kernel, 1, nullptr, &one, &pitch),
        });
}

TEST_F(Handles, OfMemoryObjects) {
    cl_int error = CL_INVALID_VALUE;
    const cl_mem released_handle = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &error);
    ASSERT_EQ(clReleaseMemObject(released_handle), CL_SUCCESS);
    static const auto note = [](cl_mem, void*) {};
    static const cl_buffer_region whole{0, 64};
    static size_t pitch;
    expect_refused(
        CL_INVALID_MEM_OBJECT, {live.context, released_handle},
        {
            CALL(clRetainMemObject, h),
            CALL(clReleaseMemObject, h),
            CALL(clGetMemObjectInfo, h, CL_MEM_SIZE, 0, nullptr, nullptr),
            CALL(clGetImageInfo, h, CL_IMAGE_WIDTH, 0, nullptr, nullptr),
            CALL(clGetPipeInfo, h, CL_PIPE_PACKET_SIZE, 0, nullptr, nullptr),
            CALL(clSetMemObjectDestructorCallback, h, note, nullptr),
            MAKE(clCreateSubBuffer, h, 0, CL_BUFFER_CREATE_TYPE_REGION, &whole),
            CALL(clEnqueueReadBuffer, live.queue, h, CL_TRUE, 0, 4, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueWriteBuffer, live.queue, h, CL_TRUE, 0, 4, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueReadBufferRect, live.queue, h, CL_TRUE, origin, origin, region, 0, 0, 0, 0, bytes, 0, nullptr,
                 nullptr),
            CALL(clEnqueueWriteBufferRect, live.queue, h, CL_TRUE, origin, origin, region, 0, 0, 0, 0, bytes, 0,
                 nullptr, nullptr),
            CALL(clEnqueueCopyBuffer, live.queue, h, live.buffer, 0, 0, 4, 0, nullptr, nullptr),
            CALL(clEnqueueCopyBuffer, live.queue, live.buffer, h, 0, 0, 4, 0, nullptr, nullptr),
            CALL(clEnqueueCopyBufferRect, live.queue, h, live.buffer, origin, origin, region, 0, 0, 0, 0, 0, nullptr,
                 nullptr),
            CALL(clEnqueueCopyBufferRect, live.queue, live.buffer, h, origin, origin, region, 0, 0, 0, 0, 0, nullptr,
                 nullptr),
            CALL(clEnqueueFillBuffer, live.queue, h, bytes, 4, 0, 4, 0, nullptr, nullptr),
            MAKE(clEnqueueMapBuffer, live.queue, h, CL_TRUE, CL_MAP_READ, 0, 4, 0, nullptr, nullptr),
            CALL(clEnqueueUnmapMemObject, live.queue, h, bytes, 0, nullptr, nullptr),
            Call{"clEnqueueMigrateMemObjects",
                 [](Handle h) {
                     const cl_mem listed = h;
                     return clEnqueueMigrateMemObjects(live.queue, 1, &listed, 0, 0, nullptr, nullptr);
                 }},
            CALL(clEnqueueReadImage, live.queue, h, CL_TRUE, origin, region, 0, 0, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueWriteImage, live.queue, h, CL_TRUE, origin, region, 0, 0, bytes, 0, nullptr, nullptr),
            CALL(clEnqueueCopyImage, live.queue, h, h, origin, origin, region, 0, nullptr, nullptr),
            CALL(clEnqueueCopyImageToBuffer, live.queue, h, live.buffer, origin, region, 0, 0, nullptr, nullptr),
            CALL(clEnqueueCopyBufferToImage, live.queue, live.buffer, h, 0, origin, region, 0, nullptr, nullptr),
            CALL(clEnqueueFillImage, live.queue, h, bytes, origin, region, 0, nullptr, nullptr),
            MAKE(clEnqueueMapImage, live.queue, h, CL_TRUE, CL_MAP_READ, origin, region, &pitch, nullptr, 0, nullptr,
                 nullptr),
        });
    // A null buffer is a null pointer in the kernel.
    for (void* const wrong : {foreign_handle<void*>(context), static_cast<void*>(released_handle)})
        EXPECT_EQ(clSetKernelArg(live.kernel, 0, sizeof wrong, &wrong), CL_INVALID_MEM_OBJECT);
    expect_refused(CL_INVALID_SAMPLER, {live.context, live.buffer},
                   {
                       CALL(clRetainSampler, h),
                       CALL(clReleaseSampler, h),
                       CALL(clGetSamplerInfo, h, CL_SAMPLER_REFERENCE_COUNT, 0, nullptr, nullptr),
                   });
}

TEST_F(Handles, OfPrograms) {
    const cl_program released_handle = [&] {
        cl_int error = CL_INVALID_VALUE;
        const cl_program made = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
        EXPECT_EQ(clReleaseProgram(made), CL_SUCCESS);
        return made;
    }();
    static const auto note = [](cl_program, void*) {};
    static const char* name = "header.h";
    expect_refused(
        CL_INVALID_PROGRAM, {live.context, released_handle},
        {
            CALL(clRetainProgram, h),
            CALL(clReleaseProgram, h),
            CALL(clGetProgramInfo, h, CL_PROGRAM_NUM_DEVICES, 0, nullptr, nullptr),
            CALL(clGetProgramBuildInfo, h, live.device, CL_PROGRAM_BUILD_STATUS, 0, nullptr, nullptr),
            CALL(clBuildProgram, h, 0, nullptr, "", nullptr, nullptr),
            CALL(clCompileProgram, h, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr),
            Call{"clCompileProgram with a header",
                 [](Handle h) {
                     const cl_program header = h;
                     return clCompileProgram(live.program, 0, nullptr, "", 1, &header, &name, nullptr, nullptr);
                 }},
            Call{"clLinkProgram",
                 [](Handle h) {
                     const cl_program input = h;
                     cl_int error = CL_SUCCESS;
                     EXPECT_EQ(clLinkProgram(live.context, 0, nullptr, "", 1, &input, nullptr, nullptr, &error),
                               nullptr);
                     return error;
                 }},
            CALL(clSetProgramReleaseCallback, h, note, nullptr),
            CALL(clSetProgramSpecializationConstant, h, 0, 4, bytes),
            MAKE(clCreateKernel, h, "k"),
            CALL(clCreateKernelsInProgram, h, 0, nullptr, &count),
        });
}

TEST_F(Handles, OfKernels) {
    const cl_kernel released_handle = [&] {
        cl_int error = CL_INVALID_VALUE;
        const cl_kernel made = clCreateKernel(live.program, "k", &error);
        EXPECT_EQ(clReleaseKernel(made), CL_SUCCESS);
        return made;
    }();
    static size_t local;
    expect_refused(CL_INVALID_KERNEL, {live.context, released_handle},
                   {
                       CALL(clRetainKernel, h),
                       CALL(clReleaseKernel, h),
                       MAKE(clCloneKernel, h),
                       CALL(clSetKernelArg, h, 0, sizeof(cl_mem), &live.buffer),
                       CALL(clSetKernelArgSVMPointer, h, 0, bytes),
                       CALL(clSetKernelExecInfo, h, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, nullptr),
                       CALL(clGetKernelInfo, h, CL_KERNEL_NUM_ARGS, 0, nullptr, nullptr),
                       CALL(clGetKernelArgInfo, h, 0, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr),
                       CALL(clGetKernelWorkGroupInfo, h, live.device, CL_KERNEL_WORK_GROUP_SIZE, 0, nullptr, nullptr),
                       CALL(clGetKernelSubGroupInfo, h, live.device, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, nullptr, 0,
                            nullptr, nullptr),
                       CALL(clGetKernelSubGroupInfoKHR, h, live.device, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, nullptr, 0,
                            nullptr, nullptr),
                       CALL(clEnqueueNDRangeKernel, live.queue, h, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
                       CALL(clEnqueueTask, live.queue, h, 0, nullptr, nullptr),
                       CALL(clGetKernelSuggestedLocalWorkSizeKHR, live.queue, h, 1, nullptr, &one, &local),
                   });
}

TEST_F(Handles, OfEvents) {
    const cl_event released_handle = [&] {
        cl_int error = CL_INVALID_VALUE;
        const cl_event made = clCreateUserEvent(context, &error);
        EXPECT_EQ(clSetUserEventStatus(made, CL_COMPLETE), CL_SUCCESS);
        EXPECT_EQ(clReleaseEvent(made), CL_SUCCESS);
        return made;
    }();
    static const auto note = [](cl_event, cl_int, void*) {};
    expect_refused(CL_INVALID_EVENT, {live.context, released_handle},
                   {
                       CALL(clRetainEvent, h),
                       CALL(clReleaseEvent, h),
                       CALL(clGetEventInfo, h, CL_EVENT_COMMAND_TYPE, 0, nullptr, nullptr),
                       CALL(clGetEventProfilingInfo, h, CL_PROFILING_COMMAND_END, 0, nullptr, nullptr),
                       CALL(clSetUserEventStatus, h, CL_COMPLETE),
                       CALL(clSetEventCallback, h, CL_COMPLETE, note, nullptr),
                       Call{"clWaitForEvents",
                            [](Handle h) {
                                const cl_event listed = h;
                                return of_polder<decltype(clWaitForEvents)>("clWaitForEvents")(1, &listed);
                            }},
                       Call{"clEnqueueWaitForEvents",
                            [](Handle h) {
                                const cl_event listed = h;
                                return clEnqueueWaitForEvents(live.queue, 1, &listed);
                            }},
                   });
}

} // namespace
} // namespace polder::test
