// Buffers that are created, used and released without waiting: a device's memory is used again in the order of its
// queues, so that the loop neither stops nor needs more than two buffers' memory.
#include "../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <algorithm>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t rounds = 10'000;
constexpr size_t bytes = size_t{64} << 20;
constexpr size_t items = 64;

// Touches one word in each 64th of the buffer.
constexpr const char* kernels = R"(
kernel void scatter(global int* data, int value) { data[get_global_id(0) * (16777216 / 64)] = value; }
kernel void gather(global const int* data, global int* results, int round) {
    int sum = 0;
    for (int i = 0; i < 64; ++i)
        sum += data[i * (16777216 / 64)];
    results[round] = sum;
}
)";

class StreamOrder : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu discrete\"";
        OwnedProgram program = build(kernels);
        scatter_ = make_kernel(program, "scatter");
        gather_ = make_kernel(program, "gather");
    }

    // One round: a new buffer is written by one kernel, read by the next, and released while both are in flight.
    void round(cl_command_queue on, cl_mem results, size_t number, cl_event after) {
        const OwnedMem data = make_buffer(bytes);
        const cl_mem handle = data;
        const auto value = static_cast<cl_int>(number);
        ASSERT_EQ(clSetKernelArg(scatter_, 0, sizeof handle, &handle), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(scatter_, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(on, scatter_, 1, nullptr, &items, nullptr, after ? 1 : 0,
                                         after ? &after : nullptr, nullptr),
                  CL_SUCCESS)
            << number;
        ASSERT_EQ(clSetKernelArg(gather_, 0, sizeof handle, &handle), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(gather_, 1, sizeof results, &results), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(gather_, 2, sizeof value, &value), CL_SUCCESS);
        constexpr size_t one = 1;
        ASSERT_EQ(clEnqueueNDRangeKernel(on, gather_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS)
            << number;
    }

    // The most bytes that buffers had at once in the discrete device's memory.
    cl_ulong peak() {
        const auto spaces = reinterpret_cast<clGetMemorySpacesPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemorySpacesPOLDER"));
        cl_memory_space_polder entries[2];
        EXPECT_EQ(spaces(context, 2, entries, nullptr), CL_SUCCESS);
        return entries[1].peak_bytes;
    }

    void check(cl_command_queue on, cl_mem results, size_t first, size_t step) {
        std::vector<cl_int> seen(rounds);
        ASSERT_EQ(
            clEnqueueReadBuffer(on, results, CL_TRUE, 0, rounds * sizeof(cl_int), seen.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
        for (size_t number = first; number < rounds; number += step)
            ASSERT_EQ(seen[number], static_cast<cl_int>(items * number)) << number;
    }

    OwnedKernel scatter_;
    OwnedKernel gather_;
};

TEST_F(StreamOrder, OneQueueKeepsAtMostTwoBlocks) {
    queue = make_queue(devices[1]);
    const OwnedMem results = make_buffer(rounds * sizeof(cl_int));
    for (size_t number = 0; number < rounds; ++number)
        ASSERT_NO_FATAL_FAILURE(round(queue, results, number, nullptr));
    check(queue, results, 0, 1);
    EXPECT_LE(peak(), 2 * bytes + (1 << 20));
}

TEST_F(StreamOrder, TwoQueuesInTurnKeepAtMostTwoBlocks) {
    const OwnedQueue two[] = {make_queue(devices[1]), make_queue(devices[1])};
    const OwnedMem results[] = {make_buffer(rounds * sizeof(cl_int)), make_buffer(rounds * sizeof(cl_int))};
    for (size_t number = 0; number < rounds; ++number)
        ASSERT_NO_FATAL_FAILURE(round(two[number % 2], results[number % 2], number, nullptr));
    for (size_t i = 0; i < 2; ++i)
        check(two[i], results[i], i, 2);
    EXPECT_LE(peak(), 2 * bytes + (1 << 20));
}

// Every round is enqueued before it may begin.
TEST_F(StreamOrder, RoundsBehindUserEventsKeepAtMostTwoBlocks) {
    queue = make_queue(devices[1]);
    const OwnedMem results = make_buffer(rounds * sizeof(cl_int));
    for (size_t number = 0; number < rounds; ++number) {
        cl_int error = CL_INVALID_VALUE;
        const OwnedEvent gate = clCreateUserEvent(context, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        ASSERT_NO_FATAL_FAILURE(round(queue, results, number, gate));
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    }
    check(queue, results, 0, 1);
    EXPECT_LE(peak(), 2 * bytes + (1 << 20));
}

// The last allocation of a launch that does not fit leaves the memory to the next launch.
TEST_F(StreamOrder, RefusedLaunchKeepsNoMemory) {
    queue = make_queue(devices[1]);
    constexpr size_t large = size_t{160} << 20;
    const OwnedMem first = make_buffer(large), second = make_buffer(large), results = make_buffer(4);
    const cl_mem handles[] = {first, second};
    const auto launch = [&](cl_mem from, cl_mem to) {
        constexpr cl_int number = 0;
        constexpr size_t one = 1;
        EXPECT_EQ(clSetKernelArg(gather_, 0, sizeof from, &from), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(gather_, 1, sizeof to, &to), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(gather_, 2, sizeof number, &number), CL_SUCCESS);
        return clEnqueueNDRangeKernel(queue, gather_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
    };
    EXPECT_EQ(launch(handles[0], handles[1]), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    EXPECT_EQ(launch(handles[1], results), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

} // namespace
} // namespace polder::test
