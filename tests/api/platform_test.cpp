#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <cstring>

namespace polder::test {
namespace {

using Platforms = ContextTest;

std::string platform_text(cl_platform_info name) {
    size_t size = 0;
    EXPECT_EQ(clGetPlatformInfo(platform(), name, 0, nullptr, &size), CL_SUCCESS);
    std::string text(size, '\0');
    EXPECT_EQ(clGetPlatformInfo(platform(), name, size, text.data(), nullptr), CL_SUCCESS);
    return text.substr(0, text.find('\0'));
}

TEST_F(Platforms, IdsReportEveryBadArgument) {
    // Straight to Polder: the loader implements the function of this name itself.
    const auto ids = reinterpret_cast<clIcdGetPlatformIDsKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clIcdGetPlatformIDsKHR"));
    ASSERT_NE(ids, nullptr);
    cl_platform_id found = nullptr;
    EXPECT_EQ(ids(0, &found, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(ids(1, nullptr, nullptr), CL_INVALID_VALUE);
    cl_uint count = 0;
    EXPECT_EQ(ids(0, nullptr, &count), CL_SUCCESS);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(ids(1, &found, nullptr), CL_SUCCESS);
    EXPECT_EQ(found, platform());
}

TEST_F(Platforms, QueriesAnswer) {
    EXPECT_EQ(platform_text(CL_PLATFORM_PROFILE), "FULL_PROFILE");
    EXPECT_EQ(platform_text(CL_PLATFORM_NAME), "Polder");
    EXPECT_EQ(platform_text(CL_PLATFORM_VERSION).substr(0, 11), "OpenCL 3.1 ");
    EXPECT_FALSE(platform_text(CL_PLATFORM_VENDOR).empty());
    EXPECT_NE(platform_text(CL_PLATFORM_EXTENSIONS).find("cl_khr_icd"), std::string::npos);
    cl_version version = 0;
    EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_NUMERIC_VERSION, sizeof version, &version, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(version, cl_version{CL_MAKE_VERSION(3, 1, 0)});
    cl_ulong resolution = 0;
    EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof resolution, &resolution, nullptr),
              CL_SUCCESS);
    EXPECT_GT(resolution, 0u);
}

TEST_F(Platforms, ExtensionsWithVersionNameTheSameAsTheText) {
    size_t size = 0;
    ASSERT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS_WITH_VERSION, 0, nullptr, &size), CL_SUCCESS);
    std::vector<cl_name_version> list(size / sizeof(cl_name_version));
    ASSERT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS_WITH_VERSION, size, list.data(), nullptr),
              CL_SUCCESS);
    std::string names;
    for (const cl_name_version& entry : list) {
        names += (names.empty() ? "" : " ") + std::string(entry.name);
        EXPECT_NE(entry.version, 0u) << entry.name;
    }
    EXPECT_EQ(names, platform_text(CL_PLATFORM_EXTENSIONS));
}

TEST_F(Platforms, QueriesReportEveryBadArgument) {
    char text[64];
    EXPECT_EQ(clGetPlatformInfo(foreign_handle<cl_platform_id>(context), CL_PLATFORM_NAME, sizeof text, text, nullptr),
              CL_INVALID_PLATFORM);
    EXPECT_EQ(clGetPlatformInfo(platform(), 0x1, sizeof text, text, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_NAME, 2, text, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clUnloadPlatformCompiler(foreign_handle<cl_platform_id>(context)), CL_INVALID_PLATFORM);
    EXPECT_EQ(clUnloadPlatformCompiler(platform()), CL_SUCCESS);
}

TEST_F(Platforms, DispatchTableHasNoEmptyPlace) {
    void* const* table = nullptr;
    std::memcpy(&table, static_cast<cl_context>(context), sizeof table);
    for (size_t i = 0; i < sizeof(cl_icd_dispatch) / sizeof(void*); ++i)
        EXPECT_NE(table[i], nullptr) << "place " << i;
}

// Every function of OpenCL 3.1, the deprecated ones included, and those of the extensions.
constexpr const char* function_names[] = {"clBuildProgram",
                                          "clCloneKernel",
                                          "clCompileProgram",
                                          "clCreateBuffer",
                                          "clCreateBufferWithProperties",
                                          "clCreateCommandQueue",
                                          "clCreateCommandQueueWithProperties",
                                          "clCreateContext",
                                          "clCreateContextFromType",
                                          "clCreateImage",
                                          "clCreateImage2D",
                                          "clCreateImage3D",
                                          "clCreateImageWithProperties",
                                          "clCreateKernel",
                                          "clCreateKernelsInProgram",
                                          "clCreatePipe",
                                          "clCreateProgramWithBinary",
                                          "clCreateProgramWithBuiltInKernels",
                                          "clCreateProgramWithIL",
                                          "clCreateProgramWithSource",
                                          "clCreateSampler",
                                          "clCreateSamplerWithProperties",
                                          "clCreateSubBuffer",
                                          "clCreateSubDevices",
                                          "clCreateUserEvent",
                                          "clEnqueueBarrier",
                                          "clEnqueueBarrierWithWaitList",
                                          "clEnqueueCopyBuffer",
                                          "clEnqueueCopyBufferRect",
                                          "clEnqueueCopyBufferToImage",
                                          "clEnqueueCopyImage",
                                          "clEnqueueCopyImageToBuffer",
                                          "clEnqueueFillBuffer",
                                          "clEnqueueFillImage",
                                          "clEnqueueMapBuffer",
                                          "clEnqueueMapImage",
                                          "clEnqueueMarker",
                                          "clEnqueueMarkerWithWaitList",
                                          "clEnqueueMigrateMemObjects",
                                          "clEnqueueNDRangeKernel",
                                          "clEnqueueNativeKernel",
                                          "clEnqueueReadBuffer",
                                          "clEnqueueReadBufferRect",
                                          "clEnqueueReadImage",
                                          "clEnqueueSVMFree",
                                          "clEnqueueSVMMap",
                                          "clEnqueueSVMMemFill",
                                          "clEnqueueSVMMemcpy",
                                          "clEnqueueSVMMigrateMem",
                                          "clEnqueueSVMUnmap",
                                          "clEnqueueTask",
                                          "clEnqueueUnmapMemObject",
                                          "clEnqueueWaitForEvents",
                                          "clEnqueueWriteBuffer",
                                          "clEnqueueWriteBufferRect",
                                          "clEnqueueWriteImage",
                                          "clFinish",
                                          "clFlush",
                                          "clGetCommandQueueInfo",
                                          "clGetContextInfo",
                                          "clGetDeviceAndHostTimer",
                                          "clGetDeviceIDs",
                                          "clGetDeviceInfo",
                                          "clGetEventInfo",
                                          "clGetEventProfilingInfo",
                                          "clGetExtensionFunctionAddress",
                                          "clGetExtensionFunctionAddressForPlatform",
                                          "clGetHostTimer",
                                          "clGetImageInfo",
                                          "clGetKernelArgInfo",
                                          "clGetKernelInfo",
                                          "clGetKernelSubGroupInfo",
                                          "clGetKernelWorkGroupInfo",
                                          "clGetKernelSuggestedLocalWorkSize",
                                          "clGetMemObjectInfo",
                                          "clGetPipeInfo",
                                          "clGetPlatformIDs",
                                          "clGetPlatformInfo",
                                          "clGetProgramBuildInfo",
                                          "clGetProgramInfo",
                                          "clGetSamplerInfo",
                                          "clGetSupportedImageFormats",
                                          "clLinkProgram",
                                          "clReleaseCommandQueue",
                                          "clReleaseContext",
                                          "clReleaseDevice",
                                          "clReleaseEvent",
                                          "clReleaseKernel",
                                          "clReleaseMemObject",
                                          "clReleaseProgram",
                                          "clReleaseSampler",
                                          "clRetainCommandQueue",
                                          "clRetainContext",
                                          "clRetainDevice",
                                          "clRetainEvent",
                                          "clRetainKernel",
                                          "clRetainMemObject",
                                          "clRetainProgram",
                                          "clRetainSampler",
                                          "clSVMAlloc",
                                          "clSVMFree",
                                          "clSetCommandQueueProperty",
                                          "clSetContextDestructorCallback",
                                          "clSetDefaultDeviceCommandQueue",
                                          "clSetEventCallback",
                                          "clSetKernelArg",
                                          "clSetKernelArgSVMPointer",
                                          "clSetKernelExecInfo",
                                          "clSetMemObjectDestructorCallback",
                                          "clSetProgramReleaseCallback",
                                          "clSetProgramSpecializationConstant",
                                          "clSetUserEventStatus",
                                          "clUnloadCompiler",
                                          "clUnloadPlatformCompiler",
                                          "clWaitForEvents",
                                          "clIcdGetPlatformIDsKHR",
                                          "clCreateCommandQueueWithPropertiesKHR",
                                          "clGetKernelSuggestedLocalWorkSizeKHR",
                                          "clGetKernelSubGroupInfoKHR",
                                          "clGetMemorySpacesPOLDER",
                                          "clGetMemoryTransfersPOLDER",
                                          "clGetMemoryStatisticsPOLDER",
                                          "clGetMemoryBudgetsPOLDER",
                                          "clResetMemoryPeaksPOLDER",
                                          "clTrimMemoryPOLDER"};

TEST_F(Platforms, FunctionsAreFoundByName) {
    for (const char* name : function_names)
        EXPECT_NE(clGetExtensionFunctionAddressForPlatform(platform(), name), nullptr) << name;
    EXPECT_EQ(clGetExtensionFunctionAddressForPlatform(platform(), "clNoSuchFunction"), nullptr);
    EXPECT_EQ(clGetExtensionFunctionAddressForPlatform(platform(), nullptr), nullptr);
    // A function of an extension that is not in the list.
    EXPECT_EQ(clGetExtensionFunctionAddressForPlatform(platform(), "clCreateFromGLBuffer"), nullptr);
}

TEST_F(Platforms, SharedObjectsOfOtherApisDoNotExist) {
    cl_icd_dispatch* table = nullptr;
    std::memcpy(&table, static_cast<cl_context>(context), sizeof table);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(table->clCreateFromGLBuffer(context, CL_MEM_READ_WRITE, 1, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(table->clCreateFromGLTexture(context, CL_MEM_READ_WRITE, 1, 0, 1, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(table->clEnqueueAcquireGLObjects(nullptr, 0, nullptr, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(table->clEnqueueAcquireGLObjects(queue, 1, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(table->clEnqueueAcquireGLObjects(queue, 0, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    OwnedMem buffer = make_buffer(16);
    EXPECT_EQ(table->clGetGLObjectInfo(buffer, nullptr, nullptr), CL_INVALID_GL_OBJECT);
    EXPECT_EQ(table->clGetGLObjectInfo(nullptr, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
}

} // namespace
} // namespace polder::test
