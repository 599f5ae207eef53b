// The functions of cl_intel_unified_shared_memory, found by name, and kernels on such memory.
#pragma once

#include "command_buffer.h"

#include <CL/cl_ext.h>
#include <numeric>

namespace polder::test {

constexpr const char* usm_kernels = R"(
kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }
kernel void follow(global int* global* table, int entries, int value) {
    for (int i = 0; i < entries; ++i)
        table[i][get_global_id(0)] += value;
}
kernel void by_number(ulong address, int value) { ((global int*)address)[get_global_id(0)] += value; }
)";

template <class Function>
Function find(const char* name) {
    void* const found = clGetExtensionFunctionAddressForPlatform(platform(), name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Function>(found);
}

class Usm : public ContextTest {
protected:
    static constexpr size_t count = 1024;
    static constexpr size_t bytes = count * sizeof(cl_int);

    void SetUp() override {
        ContextTest::SetUp();
        program = build(usm_kernels, "-cl-std=CL3.0");
    }
    // Host and shared allocations, which it uses in place.
    bool has_host_memory(size_t device) { return capabilities(device, CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL) != 0; }
    cl_device_unified_shared_memory_capabilities_intel capabilities(size_t device, cl_device_info name) {
        cl_device_unified_shared_memory_capabilities_intel value = 0;
        EXPECT_EQ(clGetDeviceInfo(devices[device], name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    cl_int* device_memory(size_t device, size_t size = bytes) {
        cl_int error = CL_INVALID_VALUE;
        void* const made = device_alloc(context, devices[device], nullptr, size, 0, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return static_cast<cl_int*>(made);
    }
    cl_int* host_memory(size_t size = bytes) {
        cl_int error = CL_INVALID_VALUE;
        void* const made = host_alloc(context, nullptr, size, 0, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return static_cast<cl_int*>(made);
    }
    OwnedKernel kernel_with(const char* name, const void* pointer, cl_int value) {
        OwnedKernel kernel = make_kernel(program, name);
        EXPECT_EQ(set_pointer(kernel, 0, pointer), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        return kernel;
    }
    void launch(cl_command_queue on, cl_kernel kernel, size_t items = count) {
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    }
    std::vector<cl_int> contents(cl_command_queue on, const cl_int* pointer, size_t number = count) {
        std::vector<cl_int> values(number);
        EXPECT_EQ(copy(on, CL_TRUE, values.data(), pointer, number * sizeof(cl_int), 0, nullptr, nullptr), CL_SUCCESS);
        return values;
    }
    static OwnedCommandBuffer recorded(cl_command_queue on, const OwnedKernel& kernel) {
        OwnedCommandBuffer commands = make_command_buffer(on);
        const size_t items = count;
        EXPECT_EQ(functions().Kernel(commands, nullptr, nullptr, kernel, 1, nullptr, &items, nullptr, 0, nullptr,
                                     nullptr, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(functions().Finalize(commands), CL_SUCCESS);
        return commands;
    }
    static std::vector<cl_int> numbers(cl_int first) {
        std::vector<cl_int> values(count);
        std::iota(values.begin(), values.end(), first);
        return values;
    }

    OwnedProgram program;
    clHostMemAllocINTEL_fn host_alloc = find<clHostMemAllocINTEL_fn>("clHostMemAllocINTEL");
    clDeviceMemAllocINTEL_fn device_alloc = find<clDeviceMemAllocINTEL_fn>("clDeviceMemAllocINTEL");
    clSharedMemAllocINTEL_fn shared_alloc = find<clSharedMemAllocINTEL_fn>("clSharedMemAllocINTEL");
    clMemFreeINTEL_fn free_memory = find<clMemFreeINTEL_fn>("clMemFreeINTEL");
    clMemBlockingFreeINTEL_fn free_blocking = find<clMemBlockingFreeINTEL_fn>("clMemBlockingFreeINTEL");
    clGetMemAllocInfoINTEL_fn alloc_info = find<clGetMemAllocInfoINTEL_fn>("clGetMemAllocInfoINTEL");
    clSetKernelArgMemPointerINTEL_fn set_pointer =
        find<clSetKernelArgMemPointerINTEL_fn>("clSetKernelArgMemPointerINTEL");
    clEnqueueMemcpyINTEL_fn copy = find<clEnqueueMemcpyINTEL_fn>("clEnqueueMemcpyINTEL");
    cl_int(CL_API_CALL* fill)(cl_command_queue, void*, const void*, size_t, size_t, cl_uint, const cl_event*,
                              cl_event*) = find<decltype(fill)>("clEnqueueMemFillINTEL");
    clEnqueueMigrateMemINTEL_fn migrate = find<clEnqueueMigrateMemINTEL_fn>("clEnqueueMigrateMemINTEL");
    clEnqueueMemAdviseINTEL_fn advise = find<clEnqueueMemAdviseINTEL_fn>("clEnqueueMemAdviseINTEL");
};

}  // namespace polder::test
