#include "support/fixture.h"

#include <atomic>
#include <cstring>

namespace polder::test {
namespace {

// The first device is the CPU, which has every kind of sharing.
class Svm : public ContextTest {
protected:
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
    for (cl_svm_mem_flags flags : {cl_svm_mem_flags{0}, cl_svm_mem_flags{CL_MEM_SVM_FINE_GRAIN_BUFFER},
                                   cl_svm_mem_flags{CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS}}) {
        void* pointer = clSVMAlloc(context, flags, 100, 128);
        ASSERT_NE(pointer, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 128, 0u);
        clSVMFree(context, pointer);
    }
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

TEST_F(Svm, DevicesWithMemoryOfTheirOwnRefuse) {
    if (devices.size() < 2)
        GTEST_SKIP() << "needs a discrete device";
    OwnedQueue discrete = make_queue(devices[1]);
    const uint32_t pattern = 1;
    EXPECT_EQ(clEnqueueSVMMemFill(discrete, bytes, &pattern, 4, 4, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueSVMMap(discrete, CL_TRUE, CL_MAP_READ, bytes, 4, 0, nullptr, nullptr), CL_INVALID_OPERATION);
}

} // namespace
} // namespace polder::test
