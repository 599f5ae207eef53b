#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace polder::test {
namespace {

// The first device has SVM: the CPU, which has every kind of sharing, or a GPU.
class Svm : public ContextTest {
protected:
    static cl_device_svm_capabilities capabilities(cl_device_id device) {
        cl_device_svm_capabilities value = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    // A second device that has no SVM.
    [[nodiscard]] bool has_device_without() const { return devices.size() > 1 && capabilities(devices[1]) == 0; }
    void SetUp() override {
        ContextTest::SetUp();
        bytes = static_cast<uint8_t*>(clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0));
        ASSERT_NE(bytes, nullptr);
    }
    void TearDown() override { clSVMFree(context, bytes); }

    uint8_t* bytes = nullptr;
};

TEST_F(Svm, AllocationRefusesBadArguments) {
    EXPECT_EQ(clSVMAlloc(foreign_handle<cl_context>(context), CL_MEM_READ_WRITE, 64, 0), nullptr);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_READ_WRITE, 0, 0), nullptr);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_READ_WRITE, ~size_t{0}, 0), nullptr);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 3), nullptr);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 4096), nullptr);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_SVM_ATOMICS, 64, 0), nullptr);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0), nullptr);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_HOST_NO_ACCESS, 64, 0), nullptr);
    clSVMFree(context, nullptr);
}

TEST_F(Svm, BufferInAnAllocationCannotReachBehindItsEnd) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 4097, bytes, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_BUFFER_SIZE);
    EXPECT_EQ(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 4090, bytes + 8, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_BUFFER_SIZE);
    const OwnedMem whole = make_buffer(4096, CL_MEM_USE_HOST_PTR, bytes);
    const OwnedMem rest = make_buffer(4088, CL_MEM_USE_HOST_PTR, bytes + 8);
}

TEST_F(Svm, AllocationsAreAlignedForEveryType) {
    void* pointer = clSVMAlloc(context, 0, 100, 128);
    ASSERT_NE(pointer, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 128, 0u);
    clSVMFree(context, pointer);
}

TEST_F(Svm, CapabilitiesAreThoseOfTheDevice) {
    for (const cl_device_id device : devices) {
        cl_device_type type = 0;
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
        // A fake GPU may be one whose kernels do not use the host's addresses.
        const bool is_shared = (type & CL_DEVICE_TYPE_GPU) && !std::getenv("FAKE_CUDA_OTHER_POINTERS");
        cl_device_svm_capabilities expected = is_shared ? CL_DEVICE_SVM_COARSE_GRAIN_BUFFER : 0;
        // Another processor is another implementation's.
        if ((type & CL_DEVICE_TYPE_CPU) && device == devices[0])
            expected = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER |
                       CL_DEVICE_SVM_FINE_GRAIN_SYSTEM | CL_DEVICE_SVM_ATOMICS;
        EXPECT_EQ(capabilities(device), expected);
    }
}

// All devices of the context have to have it.
TEST_F(Svm, FineGrainedAllocationsAreForContextsOfTheCpuAlone) {
    const bool all_have = std::ranges::all_of(
        devices, [](cl_device_id device) { return (capabilities(device) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0; });
    for (const cl_svm_mem_flags flags : {cl_svm_mem_flags{CL_MEM_SVM_FINE_GRAIN_BUFFER},
                                         cl_svm_mem_flags{CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS}}) {
        void* pointer = clSVMAlloc(context, flags, 100, 128);
        EXPECT_EQ(pointer != nullptr, all_have);
        clSVMFree(context, pointer);
    }
}

// clSVMAlloc has no error code: the context's callback says why, and names the devices.
TEST_F(Svm, FineGrainedAllocationsThatAreRefusedAreExplained) {
    if (devices.size() == 1)
        return;
    std::string output;
    cl_int error = CL_SUCCESS;
    const OwnedContext explaining = clCreateContext(
        nullptr, static_cast<cl_uint>(devices.size()), devices.data(),
        [](const char* text, const void*, size_t, void* to) { *static_cast<std::string*>(to) = text; }, &output,
        &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(clSVMAlloc(explaining, CL_MEM_SVM_FINE_GRAIN_BUFFER, 100, 0), nullptr);
    for (cl_device_id each : devices) {
        cl_device_svm_capabilities svm = 0;
        char name[256] = {};
        ASSERT_EQ(clGetDeviceInfo(each, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr), CL_SUCCESS);
        ASSERT_EQ(clGetDeviceInfo(each, CL_DEVICE_NAME, sizeof name, name, nullptr), CL_SUCCESS);
        EXPECT_EQ(output.find(name) != std::string::npos, svm == 0) << name << ": " << output;
    }
}

TEST_F(Svm, CommandsRefuseRangesThatReachBehindAnAllocation) {
    const uint32_t pattern = 1;
    uint8_t plain[64] = {};
    EXPECT_EQ(clEnqueueSVMMemFill(queue, bytes + 4092, &pattern, 4, 8, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, bytes + 4080, plain, 17, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, plain, bytes + 4080, 17, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, bytes + 1, 4096, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, bytes + 4080, plain, 16, 0, nullptr, nullptr), CL_SUCCESS);
}

// Memory of the C library, which the CPU shares with the host.
TEST_F(Svm, SystemMemoryTakesTheSameCommands) {
    if (!(capabilities(devices[0]) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM))
        GTEST_SKIP() << "needs a device that shares all memory";
    std::vector<uint32_t> plain(256), copy(256);
    const uint32_t pattern = 0x01020304;
    ASSERT_EQ(clEnqueueSVMMemFill(queue, plain.data(), &pattern, 4, 1024, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueSVMMemcpy(queue, CL_FALSE, copy.data(), plain.data(), 1024, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, copy.data(), 1024, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(copy, std::vector<uint32_t>(256, pattern));
    ASSERT_EQ(clEnqueueSVMUnmap(queue, copy.data(), 0, nullptr, nullptr), CL_SUCCESS);
    const OwnedProgram program = build("kernel void k(global uint* a) { a[get_global_id(0)] += 1; }");
    const OwnedKernel kernel = make_kernel(program, "k");
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, copy.data()), CL_SUCCESS);
    const size_t items = copy.size();
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(copy, std::vector<uint32_t>(256, pattern + 1));
}

TEST_F(Svm, CommandsFillCopyAndMap) {
    const uint32_t pattern = 0x04030201;
    ASSERT_EQ(clEnqueueSVMMemFill(queue, bytes, &pattern, 4, 1024, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueSVMMemcpy(queue, CL_FALSE, bytes + 2048, bytes, 1024, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, bytes, 4096, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(bytes[2048], 1);
    EXPECT_EQ(bytes[3071], 4);
    ASSERT_EQ(clEnqueueSVMUnmap(queue, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    const void* pointers[] = {bytes};
    ASSERT_EQ(clEnqueueSVMMigrateMem(queue, 1, pointers, nullptr, 0, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST_F(Svm, CommandsReportBadArguments) {
    const uint32_t pattern = 1;
    EXPECT_EQ(clEnqueueSVMMemFill(queue, nullptr, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemFill(queue, bytes, nullptr, 4, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemFill(queue, bytes, &pattern, 3, 3, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemFill(queue, bytes + 1, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemFill(queue, bytes, &pattern, 4, 6, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, nullptr, bytes, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, bytes, nullptr, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, bytes, bytes + 2, 4, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, nullptr, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, bytes, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMUnmap(queue, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMFree(queue, 1, nullptr, nullptr, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    int elsewhere = 0;
    const void* pointers[] = {&elsewhere};
    EXPECT_EQ(clEnqueueSVMMigrateMem(queue, 1, pointers, nullptr, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMigrateMem(queue, 0, pointers, nullptr, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
}

TEST_F(Svm, EnqueuedFreeCallsTheApplicationWhenItsTurnHasCome) {
    static std::atomic<int> freed;
    freed = 0;
    const auto count = [](cl_command_queue, cl_uint number, void** pointers, void* user) {
        for (cl_uint i = 0; i < number; ++i)
            clSVMFree(static_cast<cl_context>(user), pointers[i]);
        freed += static_cast<int>(number);
    };
    void* pointers[2] = {clSVMAlloc(context, 0, 64, 0), clSVMAlloc(context, 0, 64, 0)};
    ASSERT_EQ(clEnqueueSVMFree(queue, 2, pointers, count, static_cast<cl_context>(context), 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(freed, 2);
    void* own = clSVMAlloc(context, 0, 64, 0);
    ASSERT_EQ(clEnqueueSVMFree(queue, 1, &own, nullptr, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST_F(Svm, BufferOverSvmMemorySaysSo) {
    OwnedMem buffer = make_buffer(4096, CL_MEM_USE_HOST_PTR, bytes);
    cl_bool uses_svm = CL_FALSE;
    ASSERT_EQ(clGetMemObjectInfo(buffer, CL_MEM_USES_SVM_POINTER, sizeof uses_svm, &uses_svm, nullptr), CL_SUCCESS);
    EXPECT_EQ(uses_svm, cl_bool{CL_TRUE});
}

TEST_F(Svm, NoAllocationExceedsTheLimitOfAnyDevice) {
    cl_ulong smallest = ~cl_ulong{0};
    for (const cl_device_id device : devices) {
        cl_ulong limit = 0;
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof limit, &limit, nullptr), CL_SUCCESS);
        smallest = std::min(smallest, limit);
    }
    void* const fits = clSVMAlloc(context, 0, size_t{1} << 20, 0);
    EXPECT_NE(fits, nullptr);
    clSVMFree(context, fits);
    EXPECT_EQ(clSVMAlloc(context, 0, smallest + 1, 0), nullptr);
}

TEST_F(Svm, DevicesWithMemoryOfTheirOwnRefuse) {
    if (!has_device_without())
        GTEST_SKIP() << "needs a device without SVM";
    OwnedQueue discrete = make_queue(devices[1]);
    const uint32_t pattern = 1;
    EXPECT_EQ(clEnqueueSVMMemFill(discrete, bytes, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueSVMMap(discrete, CL_TRUE, CL_MAP_READ, bytes, 4, 0, nullptr, nullptr), CL_INVALID_OPERATION);
}

TEST_F(Svm, CommandsReportEveryBadSizeAndFlag) {
    const uint8_t pattern[256] = {};
    for (const size_t pattern_size : {size_t{0}, size_t{24}, size_t{256}})
        EXPECT_EQ(clEnqueueSVMMemFill(queue, bytes, pattern, pattern_size, 768, 0, nullptr, nullptr), CL_INVALID_VALUE)
            << pattern_size;
    // A copy of nothing needs its pointers too.
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, nullptr, bytes, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, bytes, nullptr, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, bytes, bytes, 0, 0, nullptr, nullptr), CL_SUCCESS);
    for (const cl_map_flags flags : {cl_map_flags{1} << 20, cl_map_flags{CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION},
                                     cl_map_flags{CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION}})
        EXPECT_EQ(clEnqueueSVMMap(queue, CL_TRUE, flags, bytes, 4, 0, nullptr, nullptr), CL_INVALID_VALUE) << flags;
    const void* pointers[] = {bytes};
    const size_t too_much[] = {4097};
    EXPECT_EQ(clEnqueueSVMMigrateMem(queue, 1, pointers, nullptr, 1 << 10, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMigrateMem(queue, 1, nullptr, nullptr, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueSVMMigrateMem(queue, 1, pointers, too_much, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    void* listed = bytes;
    EXPECT_EQ(clEnqueueSVMFree(queue, 0, &listed, nullptr, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
}

TEST_F(Svm, IsInvalidOnEveryCommandOfADeviceWithoutIt) {
    if (!has_device_without())
        GTEST_SKIP() << "needs a device without SVM";
    const OwnedQueue discrete = make_queue(devices[1]);
    const uint32_t pattern = 1;
    const void* pointers[] = {bytes};
    void* freed[] = {bytes};
    EXPECT_EQ(clEnqueueSVMFree(discrete, 1, freed, nullptr, nullptr, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueSVMMemcpy(discrete, CL_TRUE, bytes, bytes + 8, 4, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueSVMMemFill(discrete, bytes, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueSVMMap(discrete, CL_TRUE, CL_MAP_READ, bytes, 4, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueSVMUnmap(discrete, bytes, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueSVMMigrateMem(discrete, 1, pointers, nullptr, 0, 0, nullptr, nullptr), CL_INVALID_OPERATION);

    // Pointers into it as arguments, which the CPU of the same context could follow.
    const OwnedProgram program = build("kernel void k(global int* a) { a[0] = 1; }");
    const OwnedKernel kernel = make_kernel(program, "k");
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, bytes), CL_SUCCESS);
    const size_t one = 1;
    EXPECT_EQ(clEnqueueNDRangeKernel(discrete, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueTask(discrete, kernel, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    size_t local = 0;
    EXPECT_EQ(suggest(discrete, kernel, 1, nullptr, &one, &local), CL_INVALID_OPERATION);
    EXPECT_EQ(suggest(queue, kernel, 1, nullptr, &one, &local), CL_SUCCESS);
}

TEST_F(Svm, ContextsWithoutItSaySo) {
    if (!has_device_without())
        GTEST_SKIP() << "needs a device without SVM";
    clSVMFree(context, std::exchange(bytes, nullptr));
    cl_int error = CL_INVALID_VALUE;
    devices = {devices[1]};
    queue.reset();
    context = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    queue = make_queue(devices[0]);
    EXPECT_EQ(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0), nullptr);
    const OwnedProgram program = build("kernel void k(global int* a) { a[0] = 1; }");
    const OwnedKernel kernel = make_kernel(program, "k");
    int anything = 0;
    void* pointers[] = {&anything};
    const cl_bool yes = CL_TRUE, no = CL_FALSE;
    EXPECT_EQ(clSetKernelArgSVMPointer(kernel, 0, &anything), CL_INVALID_OPERATION);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, pointers),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes, &yes),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof no, &no), CL_SUCCESS);
}

// POCL_MEMORY_LIMIT, where the test is run with one: allocations and buffers share it, and what is freed is there again.
TEST_F(Svm, AllocationsCountAgainstTheLimitOfHostMemory) {
    constexpr size_t MiB = size_t{1} << 20;
    const char* const text = std::getenv("POCL_MEMORY_LIMIT");
    if (!text)
        GTEST_SKIP() << "POCL_MEMORY_LIMIT is not set";
    ASSERT_STREQ(text, "64M");
    const OwnedQueue on = make_queue(devices[0]);
    const cl_int value = 7;
    // 1 MiB has a part of a region, 6 MiB has one of its own.
    for (const size_t size : {6 * MiB, MiB}) {
        std::vector<void*> all;
        while (void* const one = clSVMAlloc(context, CL_MEM_READ_WRITE, size, 0)) {
            all.push_back(std::memset(one, 1, 64));
            ASSERT_LE(all.size() * size, 64 * MiB) << size;
        }
        EXPECT_GE(all.size() * size, 48 * MiB) << size;
        const OwnedMem buffer = make_buffer(16 * MiB);
        const cl_int filled = clEnqueueFillBuffer(on, buffer, &value, sizeof value, 0, 16 * MiB, 0, nullptr, nullptr);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
        // The processor's buffers are there, too.
        const bool is_host = (capabilities(devices[0]) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
        EXPECT_EQ(filled, is_host ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS);
        for (void* const one : all)
            clSVMFree(context, one);
        EXPECT_EQ(clEnqueueFillBuffer(on, buffer, &value, sizeof value, 0, 16 * MiB, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
    }
}

}  // namespace
}  // namespace polder::test
