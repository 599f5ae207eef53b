// Uploads that wait for functions of the application which do not return: other uploads to the same device are not delayed, in this
// context or in another one.
#include "../api/support/native_kernels.h"
#include "support/flow.h"

#include <atomic>
#include <thread>

namespace polder::test {
namespace {

constexpr size_t count = 16384;
constexpr size_t first = 1;  // the device

class BlockedUploads : public FlowTest {
protected:
    static std::atomic<bool> is_open;

    void SetUp() override {
        FlowTest::SetUp();
        if (!executes_native_kernels(devices[0]))
            GTEST_SKIP() << "the first device executes no functions of the application";
        is_open = false;
        // More than the queues that a device keeps for transfers (memory::HiddenQueues::parallel_queues).
        for (int i = 0; i < 6; ++i)
            block_one();
    }
    // The kernel needs bytes that the processor holds, and waits for the function, so the upload waits for the function, too.
    void block_one() {
        const OwnedQueue on_processor = make_queue(devices[0]), on_device = make_queue(devices[first]);
        const OwnedMem buffer = make_buffer(count * sizeof(cl_int));
        write(buffer, numbers(count), on_processor);
        OwnedEvent returned;
        const auto function = [](void*) {
            while (!is_open)
                std::this_thread::yield();
        };
        ASSERT_EQ(
            clEnqueueNativeKernel(on_processor, function, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, returned.out()),
            CL_SUCCESS);
        const OwnedKernel kernel = make_kernel(program, "add");
        const cl_int one = 1;
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof one, &one), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(on_device, kernel, 1, nullptr, &count, nullptr, 1, returned.in(), nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(clFlush(on_processor), CL_SUCCESS);
        ASSERT_EQ(clFlush(on_device), CL_SUCCESS);
    }
    void TearDown() override {
        is_open = true;
        FlowTest::TearDown();
    }
    // Returns the sum that a kernel on the device computes of a new buffer's contents.
    static cl_int sum_on_device(cl_context in, cl_command_queue on, cl_program of) {
        const std::vector<cl_int> contents(count, 3);
        cl_int error = CL_INVALID_VALUE;
        const OwnedMem from = clCreateBuffer(in, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, count * sizeof(cl_int),
                                             const_cast<cl_int*>(contents.data()), &error);
        EXPECT_EQ(error, CL_SUCCESS);
        const OwnedMem to = clCreateBuffer(in, CL_MEM_READ_WRITE, sizeof(cl_int), nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        const OwnedKernel kernel = clCreateKernel(of, "add_sum", &error);
        EXPECT_EQ(error, CL_SUCCESS);
        const size_t one = 1;
        const auto items = static_cast<cl_int>(count);
        cl_int sum = 0;
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), from.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof items, &items), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clEnqueueReadBuffer(on, to, CL_TRUE, 0, sizeof sum, &sum, 0, nullptr, nullptr), CL_SUCCESS);
        return sum;
    }
};
std::atomic<bool> BlockedUploads::is_open{true};

// These return while the functions still wait.
TEST_F(BlockedUploads, DoNotHoldUpOthersOfTheirContext) {
    const OwnedQueue on = make_queue(devices[first]);
    EXPECT_EQ(sum_on_device(context, on, program), 3 * static_cast<cl_int>(count));
}

TEST_F(BlockedUploads, DoNotHoldUpThoseOfAnotherContext) {
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext other = clCreateContext(nullptr, 1, &devices[first], nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const OwnedQueue on = clCreateCommandQueueWithProperties(other, devices[first], nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const char* text = flow_kernels;
    const OwnedProgram built = clCreateProgramWithSource(other, 1, &text, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(built, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(sum_on_device(other, on, built), 3 * static_cast<cl_int>(count));
}

}  // namespace
}  // namespace polder::test
