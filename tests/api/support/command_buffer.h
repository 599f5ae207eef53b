// The functions of cl_khr_command_buffer 0.9.8 and of the extensions on top of it, found by name. Older headers
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
    using CopyImageFunction =
        Function<Buffer, Queue, Properties, cl_mem, cl_mem, Sizes, Sizes, Sizes, cl_uint, Points, Point, Handle>;
    CopyImageFunction CopyImage = extension_function<CopyImageFunction>("clCommandCopyImageKHR");
    using ImageToBufferFunction =
        Function<Buffer, Queue, Properties, cl_mem, cl_mem, Sizes, Sizes, size_t, cl_uint, Points, Point, Handle>;
    ImageToBufferFunction ImageToBuffer = extension_function<ImageToBufferFunction>("clCommandCopyImageToBufferKHR");
    using BufferToImageFunction =
        Function<Buffer, Queue, Properties, cl_mem, cl_mem, size_t, Sizes, Sizes, cl_uint, Points, Point, Handle>;
    BufferToImageFunction BufferToImage = extension_function<BufferToImageFunction>("clCommandCopyBufferToImageKHR");
    using FillImageFunction =
        Function<Buffer, Queue, Properties, cl_mem, const void*, Sizes, Sizes, cl_uint, Points, Point, Handle>;
    FillImageFunction FillImage = extension_function<FillImageFunction>("clCommandFillImageKHR");
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
    cl_command_buffer_khr(CL_API_CALL* Remap)(Buffer, cl_bool, cl_uint, const Queue*, cl_uint,
                                              const cl_mutable_command_khr*, Handle,
                                              cl_int*) = extension_function<decltype(Remap)>("clRemapCommandBufferKHR");
};

inline const CommandBufferFunctions& functions() {
    static const CommandBufferFunctions found;
    return found;
}

inline cl_int CL_API_CALL release_command_buffer(cl_command_buffer_khr buffer) { return functions().Release(buffer); }
using OwnedCommandBuffer = Owned<cl_command_buffer_khr, release_command_buffer>;

// Kernels, two buffers of `count` numbers, and shorthand for what most tests record and enqueue.
constexpr const char* command_buffer_kernels = R"(
kernel void add(global uint* data, uint value) { data[get_global_id(0)] += value; }
kernel void twice(global const uint* from, global uint* to) { to[get_global_id(0)] = 2 * from[get_global_id(0)]; }
kernel void ids(global uint* out) { out[get_global_id(0)] = (uint)(get_global_id(0) + 1000 * get_local_size(0)); }
kernel void locals(global uint* out, local uint* scratch) {
    scratch[get_local_id(0)] = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = scratch[get_local_size(0) - 1 - get_local_id(0)];
}
)";
constexpr size_t count = 1024;
constexpr size_t bytes = count * sizeof(cl_uint);

// One queue's command buffer. Errors are test failures.
inline OwnedCommandBuffer make_command_buffer(cl_command_queue on, cl_properties flags = 0) {
    const cl_properties properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, flags, 0};
    cl_int error = CL_INVALID_VALUE;
    cl_command_buffer_khr made = functions().CreateCommandBuffer(1, &on, properties, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    return made;
}
inline cl_int enqueue_command_buffer(cl_command_buffer_khr buffer, cl_event* event = nullptr) {
    return functions().Enqueue(0, nullptr, buffer, 0, nullptr, event);
}

struct BufferCopy {
    size_t from_offset, to_offset, size;
};

class CommandBuffers : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        program = build(command_buffer_kernels);
        a = make_buffer(bytes);
        b = make_buffer(bytes);
        write(a, std::vector<cl_uint>(count, 1));
        write(b, std::vector<cl_uint>(count, 0));
    }
    OwnedCommandBuffer make(cl_command_queue on, cl_properties flags = 0) { return make_command_buffer(on, flags); }
    OwnedKernel with(const char* name, cl_mem buffer, cl_uint value) {
        OwnedKernel kernel = make_kernel(program, name);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        return kernel;
    }
    OwnedKernel with(const char* name, cl_mem from, cl_mem to) {
        OwnedKernel kernel = make_kernel(program, name);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof from, &from), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof to, &to), CL_SUCCESS);
        return kernel;
    }
    static cl_int record(cl_command_buffer_khr buffer, cl_kernel kernel, size_t global = count,
                         cl_mutable_command_khr* handle = nullptr, const CommandProperty* properties = nullptr) {
        return functions().Kernel(buffer, nullptr, properties, kernel, 1, nullptr, &global, nullptr, 0, nullptr,
                                  nullptr, handle);
    }
    static cl_int record_barrier(cl_command_buffer_khr buffer) {
        return functions().Barrier(buffer, nullptr, nullptr, 0, nullptr, nullptr, nullptr);
    }
    static cl_int record_copy(cl_command_buffer_khr buffer, cl_mem from, cl_mem to, const BufferCopy& copy) {
        return functions().Copy(buffer, nullptr, nullptr, from, to, copy.from_offset, copy.to_offset, copy.size, 0,
                                nullptr, nullptr, nullptr);
    }
    // Fills the first `size` bytes.
    static cl_int record_fill(cl_command_buffer_khr buffer, cl_mem to, cl_uint pattern, size_t size) {
        return functions().Fill(buffer, nullptr, nullptr, to, &pattern, sizeof pattern, 0, size, 0, nullptr, nullptr,
                                nullptr);
    }
    // A finalized command buffer with one launch, which `command` can update.
    static OwnedCommandBuffer make_mutable(cl_command_queue on, cl_kernel kernel, cl_mutable_command_khr& command) {
        OwnedCommandBuffer buffer = make_command_buffer(on, CL_COMMAND_BUFFER_MUTABLE_KHR);
        EXPECT_EQ(record(buffer, kernel, count, &command), CL_SUCCESS);
        EXPECT_EQ(functions().Finalize(buffer), CL_SUCCESS);
        return buffer;
    }
    static cl_int enqueue(cl_command_buffer_khr buffer, cl_event* event = nullptr) {
        return enqueue_command_buffer(buffer, event);
    }
    static cl_int update(cl_command_buffer_khr buffer, const DispatchConfig& config) {
        const cl_uint type = 0;
        const void* one = &config;
        return functions().Update(buffer, 1, &type, &one);
    }
    static cl_int update_argument(cl_command_buffer_khr buffer, cl_mutable_command_khr command,
                                  const cl_mutable_dispatch_arg_khr& argument) {
        DispatchConfig config;
        config.command = command;
        config.num_args = 1;
        config.arg_list = &argument;
        return update(buffer, config);
    }
    static cl_uint state(cl_command_buffer_khr buffer) {
        cl_uint value = ~0u;
        EXPECT_EQ(functions().Info(buffer, CL_COMMAND_BUFFER_STATE_KHR, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    OwnedProgram program;
    OwnedMem a, b;
};

}  // namespace polder::test
