// The functions of cl_khr_command_buffer 0.9.8 and cl_khr_command_buffer_mutable_dispatch 0.9.5, found by name. Older headers
// of Khronos declare some with other parameters, so the tests have types of their own.
#pragma once

#include "fixture.h"

#include <CL/cl_ext.h>

namespace polder::test {

using CommandProperty = cl_properties;

struct DispatchConfig {
    cl_mutable_command_khr command = nullptr;
    cl_uint num_args = 0;
    cl_uint num_svm_args = 0;
    cl_uint num_exec_infos = 0;
    cl_uint work_dim = 0;
    const cl_mutable_dispatch_arg_khr* arg_list = nullptr;
    const cl_mutable_dispatch_arg_khr* arg_svm_list = nullptr;
    const cl_mutable_dispatch_exec_info_khr* exec_info_list = nullptr;
    const size_t* global_work_offset = nullptr;
    const size_t* global_work_size = nullptr;
    const size_t* local_work_size = nullptr;
};

template <class Function>
Function extension_function(const char* name) {
    void* const found = clGetExtensionFunctionAddressForPlatform(platform(), name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Function>(found);
}

struct CommandBufferFunctions {
    template <class... Parameters>
    using Function = cl_int(CL_API_CALL*)(Parameters...);
    using Buffer = cl_command_buffer_khr;
    using Queue = cl_command_queue;
    using Properties = const CommandProperty*;
    using Points = const cl_sync_point_khr*;
    using Point = cl_sync_point_khr*;
    using Handle = cl_mutable_command_khr*;
    using Sizes = const size_t*;

    cl_command_buffer_khr(CL_API_CALL* CreateCommandBuffer)(cl_uint, const cl_command_queue*, Properties, cl_int*) =
        extension_function<decltype(CreateCommandBuffer)>("clCreateCommandBufferKHR");
    Function<Buffer> Retain = extension_function<Function<Buffer>>("clRetainCommandBufferKHR");
    Function<Buffer> Release = extension_function<Function<Buffer>>("clReleaseCommandBufferKHR");
    Function<Buffer> Finalize = extension_function<Function<Buffer>>("clFinalizeCommandBufferKHR");
    using EnqueueFunction = Function<cl_uint, Queue*, Buffer, cl_uint, const cl_event*, cl_event*>;
    EnqueueFunction Enqueue = extension_function<EnqueueFunction>("clEnqueueCommandBufferKHR");
    using InfoFunction = Function<Buffer, cl_uint, size_t, void*, size_t*>;
    InfoFunction Info = extension_function<InfoFunction>("clGetCommandBufferInfoKHR");
    using BarrierFunction = Function<Buffer, Queue, Properties, cl_uint, Points, Point, Handle>;
    BarrierFunction Barrier = extension_function<BarrierFunction>("clCommandBarrierWithWaitListKHR");
    using CopyFunction =
        Function<Buffer, Queue, Properties, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, Points, Point, Handle>;
    CopyFunction Copy = extension_function<CopyFunction>("clCommandCopyBufferKHR");
    using CopyRectFunction = Function<Buffer, Queue, Properties, cl_mem, cl_mem, Sizes, Sizes, Sizes, size_t, size_t,
                                      size_t, size_t, cl_uint, Points, Point, Handle>;
    CopyRectFunction CopyRect = extension_function<CopyRectFunction>("clCommandCopyBufferRectKHR");
    using FillFunction = Function<Buffer, Queue, Properties, cl_mem, const void*, size_t, size_t, size_t, cl_uint,
                                  Points, Point, Handle>;
    FillFunction Fill = extension_function<FillFunction>("clCommandFillBufferKHR");
    using SvmCopyFunction =
        Function<Buffer, Queue, Properties, void*, const void*, size_t, cl_uint, Points, Point, Handle>;
    SvmCopyFunction SvmCopy = extension_function<SvmCopyFunction>("clCommandSVMMemcpyKHR");
    using SvmFillFunction =
        Function<Buffer, Queue, Properties, void*, const void*, size_t, size_t, cl_uint, Points, Point, Handle>;
    SvmFillFunction SvmFill = extension_function<SvmFillFunction>("clCommandSVMMemFillKHR");
    using KernelFunction =
        Function<Buffer, Queue, Properties, cl_kernel, cl_uint, Sizes, Sizes, Sizes, cl_uint, Points, Point, Handle>;
    KernelFunction Kernel = extension_function<KernelFunction>("clCommandNDRangeKernelKHR");
    using UpdateFunction = Function<Buffer, cl_uint, const cl_uint*, const void**>;
    UpdateFunction Update = extension_function<UpdateFunction>("clUpdateMutableCommandsKHR");
    using CommandInfoFunction = Function<cl_mutable_command_khr, cl_uint, size_t, void*, size_t*>;
    CommandInfoFunction CommandInfo = extension_function<CommandInfoFunction>("clGetMutableCommandInfoKHR");
};

inline const CommandBufferFunctions& functions() {
    static const CommandBufferFunctions found;
    return found;
}

inline cl_int CL_API_CALL release_command_buffer(cl_command_buffer_khr buffer) { return functions().Release(buffer); }
using OwnedCommandBuffer = Owned<cl_command_buffer_khr, release_command_buffer>;

}  // namespace polder::test
