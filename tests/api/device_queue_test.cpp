// Queues on the device: kernels that enqueue blocks, with events and local memory, on every device that has such queues.
#include "support/command_buffer.h"
#include "support/device_queues.h"

#include <array>
#include <numeric>

namespace polder::test {
namespace {

using DeviceQueues = DeviceQueueTest;

TEST_F(DeviceQueues, Blocks_AreCompleteBeforeTheEventOfTheirKernel) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(n), ^{ out[get_global_id(0)] = n - (int)get_global_id(0); });
})",
        [&] {
            std::vector<cl_int> expected(count);
            for (size_t i = 0; i < count; ++i)
                expected[i] = static_cast<cl_int>(count - i);
            EXPECT_EQ(launch(1), expected);
        });
}

// Also at each enqueue of a command buffer, before its next command.
TEST_F(DeviceQueues, Blocks_AreExecutedByCommandBuffers) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(n), ^{ out[get_global_id(0)] += 1; });
}
kernel void twice(global int* out) { out[get_global_id(0)] *= 2; }
)",
        [&] {
            cl_bitfield capabilities = 0;
            ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof capabilities,
                                      &capabilities, nullptr),
                      CL_SUCCESS);
            EXPECT_TRUE(capabilities & CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR);
            write(result, std::vector<cl_int>(count, 0));
            const OwnedKernel first = test_kernel(), second = make_kernel(program, "twice");
            ASSERT_EQ(clSetKernelArg(second, 0, sizeof(cl_mem), result.in()), CL_SUCCESS);
            const OwnedCommandBuffer buffer = make_command_buffer(queue);
            const size_t one = 1;
            for (const auto& [kernel, items] : {std::pair{cl_kernel{first}, &one}, {cl_kernel{second}, &count}})
                ASSERT_EQ(functions().Kernel(buffer, nullptr, nullptr, kernel, 1, nullptr, items, nullptr, 0, nullptr,
                                             nullptr, nullptr),
                          CL_SUCCESS);
            ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
            for (const cl_int expected : {2, 6, 14}) {
                ASSERT_EQ(enqueue_command_buffer(buffer), CL_SUCCESS);
                EXPECT_EQ(read<cl_int>(result, count), std::vector<cl_int>(count, expected));
            }
        });
}

TEST_F(DeviceQueues, PreferredSize_HoldsABlockOfEachOf65536WorkItems) {
    ASSERT_EQ(clGetDeviceInfo(devices.front(), CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, sizeof(cl_uint), &queue_bytes,
                              nullptr),
              CL_SUCCESS);
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    const int error = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), ^{ atomic_inc(out); });
    if (error != CLK_SUCCESS)
        atomic_inc(out + 1);
})",
        [&] {
            const std::vector<cl_int> result_of_65536 = launch(65536);
            EXPECT_EQ(result_of_65536[0], 65536);
            EXPECT_EQ(result_of_65536[1], 0);
        });
}

// Work-items may be lanes of one vector; each has a literal of its own.
TEST_F(DeviceQueues, EveryWorkItem_EnqueuesWithItsOwnValues) {
    run(R"(
typedef struct {
    int of[3];
} Values;
kernel void test(queue_t queue, global int* out, int n) {
    const int id = (int)get_global_id(0);
    Values values = {{id, 2 * id, 3 * id}};
    if (id % 3 != 1)
        out[id] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP, ndrange_1D(2), ^{
            if (get_global_id(0) == 1)
                out[id] = values.of[id % 3] + 1;
        });
})",
        [&] {
            std::vector<cl_int> expected(count);
            for (cl_int i = 0; i < static_cast<cl_int>(count); ++i)
                expected[i] = i % 3 == 1 ? 0 : i * (i % 3 + 1) + 1;
            EXPECT_EQ(launch(count), expected);
        });
}

TEST_F(DeviceQueues, ABlockThatEnqueuesItself_NeedsNoStack) {
    run(R"(
void go_on(queue_t queue, global int* out, int n, int depth) {
    out[depth % n] += 1;
    if (depth < 64 * n)
        enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ go_on(queue, out, n, depth + 1); });
}
kernel void test(queue_t queue, global int* out, int n) { go_on(queue, out, n, 1); })",
        [&] { EXPECT_EQ(launch(1), std::vector<cl_int>(count, 64)); });
}

TEST_F(DeviceQueues, Events_OrderBlocks) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    const ndrange_t one = ndrange_1D(1);
    clk_event_t gate = create_user_event(), first, second, both;
    out[0] = is_valid_event(gate);
    // Enqueued in the reverse of the order in which they must run.
    out[1] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, 1, &gate, &first, ^{ out[10] = 1; });
    out[2] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, 1, &first, &second, ^{ out[11] = out[10] + 1; });
    clk_event_t list[2] = {first, second};
    out[3] = enqueue_marker(queue, 2, list, &both);
    out[4] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, 1, &both, 0, ^{ out[12] = out[11] + 1; });
    out[5] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, 0, 0, 0, ^{
        out[13] = out[10];  // 0: the gate is still closed
        set_user_event_status(gate, CL_COMPLETE);
        release_event(gate);
    });
    retain_event(both);
    release_event(both);
    out[6] = is_valid_event(both);
    release_event(first);
    release_event(second);
    release_event(both);
    out[7] = is_valid_event(CLK_NULL_EVENT);
})",
        [&] {
            const std::vector<cl_int> out = launch(1);
            EXPECT_EQ(std::vector<cl_int>(out.begin(), out.begin() + 8), (std::vector<cl_int>{1, 0, 0, 0, 0, 0, 1, 0}));
            EXPECT_EQ(std::vector<cl_int>(out.begin() + 10, out.begin() + 14), (std::vector<cl_int>{1, 2, 3, 0}));
        });
}

// The event of a block is complete when what it has enqueued is, too.
TEST_F(DeviceQueues, AnEventOfABlock_WaitsForTheBlocksThatItEnqueues) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    const ndrange_t one = ndrange_1D(1);
    clk_event_t outer;
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, 0, 0, &outer, ^{
        enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, ^{
            enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, ^{ out[0] = 5; });
        });
    });
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, one, 1, &outer, 0, ^{ out[1] = out[0] + 1; });
    release_event(outer);
})",
        [&] {
            const std::vector<cl_int> out = launch(1);
            EXPECT_EQ(out[0], 5);
            EXPECT_EQ(out[1], 6);
        });
}

TEST_F(DeviceQueues, AnEventWithAnError_SkipsTheBlock) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    clk_event_t gate = create_user_event(), skipped;
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &gate, &skipped, ^{ out[0] = 1; });
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &skipped, 0, ^{ out[1] = 1; });
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ out[2] = 1; });
    set_user_event_status(gate, -1);
})",
        [&] {
            const std::vector<cl_int> out = launch(1);
            EXPECT_EQ(std::vector<cl_int>(out.begin(), out.begin() + 3), (std::vector<cl_int>{0, 0, 1}));
        });
}

TEST_F(DeviceQueues, BlocksThatWaitForNothingThatComes_MakeTheLaunchFail) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    clk_event_t never = create_user_event();
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &never, 0, ^{ out[0] = 1; });
})",
        [&] {
            OwnedEvent done;
            ASSERT_EQ(enqueue(1, done.out()), CL_SUCCESS);
            EXPECT_EQ(clWaitForEvents(1, done.in()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        });
}

TEST_F(DeviceQueues, BlocksHaveLocalMemory) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    const uint size = 16 * sizeof(int);
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(n, 16), ^(local void* a, local void* b) {
        local int* first = (local int*)a;
        local int* second = (local int*)b;
        const int id = (int)get_local_id(0);
        first[id] = (int)get_global_id(0);
        second[15 - id] = 1000;
        work_group_barrier(CLK_LOCAL_MEM_FENCE);
        out[get_global_id(0)] = first[15 - id] + second[id];
    }, size, 64);
})",
        [&] {
            std::vector<cl_int> expected(count);
            for (cl_int i = 0; i < static_cast<cl_int>(count); ++i)
                expected[i] = i / 16 * 16 + 15 - i % 16 + 1000;
            EXPECT_EQ(launch(1), expected);
        });
}

TEST_F(DeviceQueues, RangesHaveOffsetsAndDimensions) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    const size_t offset[3] = {1, 2, 3}, size[3] = {3, 2, 2}, group[3] = {2, 1, 2};
    void (^block)(void) = ^{
        const size_t at = get_global_linear_id();
        out[at] = (int)(get_global_id(0) + 10 * get_global_id(1) + 100 * get_global_id(2));
        out[20 + at] = (int)(get_local_size(0) + 10 * get_enqueued_local_size(0) + 100 * get_work_dim());
    };
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_3D(offset, size, group), block);
    const size_t flat[2] = {5, 2};
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_2D(flat), ^{
        atomic_add(&out[40], (int)(get_global_id(0) + 10 * get_global_id(1)));
        out[41] = (int)get_work_dim();
    });
})",
        [&] {
            const std::vector<cl_int> out = launch(1);
            for (int i = 0; i < 12; ++i) {
                EXPECT_EQ(out[i], i % 3 + 1 + 10 * (i / 3 % 2 + 2) + 100 * (i / 6 + 3)) << i;
                EXPECT_EQ(out[20 + i], (i % 3 == 2 ? 1 : 2) + 20 + 300) << i;
            }
            EXPECT_EQ(out[40], 2 * (0 + 1 + 2 + 3 + 4) + 50);
            EXPECT_EQ(out[41], 2);
        });
}

TEST_F(DeviceQueues, AFullQueue_IsAnErrorOfEnqueueKernel) {
    constexpr const char* source = R"(
kernel void test(queue_t queue, global int* out, int n) {
    for (int i = 0; i < n; ++i) {
        const int result = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ atomic_inc(&out[0]); });
        if (result == CLK_SUCCESS)
            ++out[1];
        else
            out[2] = result;
    }
})";
    queue_bytes = 1024;
    const auto check = [&](cl_int error) {
        const std::vector<cl_int> out = launch(1);
        EXPECT_GT(out[1], 0);
        EXPECT_LT(out[1], static_cast<cl_int>(count));
        EXPECT_EQ(out[0], out[1]);
        EXPECT_EQ(out[2], error);
    };
    run(source, [&] { check(-101); });  // CLK_ENQUEUE_FAILURE
    run(source, [&] { check(-161); }, "-cl-std=CL3.0 -g");  // CLK_DEVICE_QUEUE_FULL
}

TEST_F(DeviceQueues, BadArgumentsOfEnqueueKernel_AreErrors) {
    run(
        R"(
kernel void test(queue_t queue, global int* out, int n) {
    void (^block)(void) = ^{ out[20] = 1; };
    out[0] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(0), block);
    out[1] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1 << 30, 1 << 30), block);
    queue_t none = get_default_queue();
    out[2] = enqueue_kernel(none, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), block);
    clk_event_t released = create_user_event();
    release_event(released);
    out[3] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &released, 0, block);
    out[4] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^(local void* p) { out[21] = 1; }, 1 << 30);
})",
        [&] {
            const std::vector<cl_int> out = launch(1);
            EXPECT_EQ(std::vector<cl_int>(out.begin(), out.begin() + 5),
                      (std::vector<cl_int>{-160, -160, -102, -57, -5}));
            EXPECT_EQ(out[20], 0);
            EXPECT_EQ(out[21], 0);
        },
        "-cl-std=CL3.0 -g");
}

TEST_F(DeviceQueues, QueriesOfBlocks) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    void (^block)(void) = ^{ out[20] = 1; };
    out[0] = (int)get_kernel_work_group_size(block);
    out[1] = (int)get_kernel_preferred_work_group_size_multiple(block);
    out[2] = (int)get_kernel_work_group_size(^(local void* p) { out[21] = 1; });
})",
        [&] {
            const std::vector<cl_int> out = launch(1);
            size_t largest = 0;
            EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof largest, &largest, nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(static_cast<size_t>(out[0]), largest);
            EXPECT_GT(out[1], 0);
            EXPECT_EQ(static_cast<size_t>(out[2]), largest);
        });
}

TEST_F(DeviceQueues, ProfilingInfo_IsCapturedNowOrWhenTheBlockEnds) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    clk_event_t early;
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64), 0, 0, &early, ^{ out[32 + get_global_id(0)] = 1; });
    out[0] = out[1] = out[2] = out[3] = -1;
    capture_event_profiling_info(early, CLK_PROFILING_COMMAND_EXEC_TIME, out);
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &early, 0, ^{
        capture_event_profiling_info(early, CLK_PROFILING_COMMAND_EXEC_TIME, out + 4);
        release_event(early);
    });
})",
        [&] {
            const std::vector<cl_int> out = launch(1);
            std::array<cl_ulong, 4> times{};
            std::memcpy(times.data(), out.data(), sizeof times);
            EXPECT_LE(times[0], times[1]);
            EXPECT_NE(times[0], ~cl_ulong{0});
            EXPECT_EQ(times[2], times[0]);
            EXPECT_EQ(times[3], times[1]);
        });
}

// The buffer is an argument of the kernel; only the block writes it.
TEST_F(DeviceQueues, WhatBlocksWrite_IsSeenOnOtherDevices) {
    run(R"(
global int added = 7;
kernel void test(queue_t queue, global int* out, int n) {
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(n), ^{ out[get_global_id(0)] += added; });
})",
        [&] {
            for (const cl_device_id other : devices) {
                const OwnedQueue there = make_queue(other);
                std::vector<cl_int> values(count);
                std::iota(values.begin(), values.end(), 100);
                write(result, values, there);
                ASSERT_EQ(enqueue(1), CL_SUCCESS);
                ASSERT_EQ(clFinish(queue), CL_SUCCESS);
                for (cl_int& value : values)
                    value += 7;
                EXPECT_EQ(read<cl_int>(result, count, there), values);
            }
        });
}

TEST_F(DeviceQueues, BlocksAreNoKernelsOfTheProgram_AndAreInItsBinary) {
    run(R"(
kernel void test(queue_t queue, global int* out, int n) {
    enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(n), ^{ out[get_global_id(0)] = 9; });
})",
        [&] {
            size_t kernels = 0;
            EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, nullptr), CL_SUCCESS);
            EXPECT_EQ(kernels, 1u);
            cl_int error = CL_SUCCESS;
            EXPECT_EQ(clCreateKernel(program, "__test_block_invoke_kernel", &error), nullptr);
            EXPECT_EQ(error, CL_INVALID_KERNEL_NAME);
            reload_from_binary();
            EXPECT_EQ(launch(1), std::vector<cl_int>(count, 9));
        });
}

TEST_F(DeviceQueues, TheDefaultQueue_IsWhereGetDefaultQueueEnqueues) {
    constexpr const char* source = R"(
kernel void test(queue_t queue, global int* out, int n) {
    out[0] = enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ out[1] = 4; });
})";
    run(source, [&] {
        EXPECT_EQ(default_queue(), nullptr);
        EXPECT_EQ(launch(1)[0], -101);
        OwnedQueue first = make_device_queue(CL_QUEUE_ON_DEVICE_DEFAULT);
        EXPECT_EQ(launch(1)[1], 4);
        OwnedQueue again = make_device_queue(CL_QUEUE_ON_DEVICE_DEFAULT);
        EXPECT_EQ(static_cast<cl_command_queue>(again), static_cast<cl_command_queue>(first));
        EXPECT_EQ(default_queue(), static_cast<cl_command_queue>(first));
        again.reset();
        EXPECT_EQ(clSetDefaultDeviceCommandQueue(context, device, device_queue), CL_SUCCESS);
        EXPECT_EQ(default_queue(), static_cast<cl_command_queue>(device_queue));
        EXPECT_EQ(clSetDefaultDeviceCommandQueue(context, device, first), CL_SUCCESS);
        first.reset();
        EXPECT_EQ(default_queue(), nullptr);
        EXPECT_EQ(launch(1)[0], -101);
    });
}

TEST_F(DeviceQueues, BadArgumentsOfTheHost_AreErrors) {
    run("kernel void test(queue_t queue, global int* out, int n) { out[0] = n; }", [&] {
        const OwnedKernel kernel = make_kernel(program, "test");
        const cl_command_queue on_host = queue, none = nullptr, on_device = device_queue;
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof on_host, &on_host), CL_INVALID_DEVICE_QUEUE);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof none, &none), CL_INVALID_DEVICE_QUEUE);
        EXPECT_EQ(clSetKernelArg(kernel, 0, 4, &on_device), CL_INVALID_ARG_SIZE);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof on_device, nullptr), CL_INVALID_ARG_VALUE);
        // The host enqueues nothing to a queue on the device.
        EXPECT_EQ(clEnqueueMarkerWithWaitList(device_queue, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
        EXPECT_EQ(clFinish(device_queue), CL_INVALID_COMMAND_QUEUE);
        EXPECT_EQ(clFlush(device_queue), CL_INVALID_COMMAND_QUEUE);
        EXPECT_EQ(creation_error(CL_QUEUE_ON_DEVICE, 0), CL_INVALID_VALUE);  // in order
        constexpr cl_queue_properties bits = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        EXPECT_EQ(creation_error(bits, 0), CL_INVALID_VALUE);
        EXPECT_EQ(creation_error(bits, cl_queue_properties{1} << 40), CL_INVALID_QUEUE_PROPERTIES);
        EXPECT_EQ(clSetDefaultDeviceCommandQueue(context, device, on_host), CL_INVALID_COMMAND_QUEUE);
        EXPECT_EQ(clSetDefaultDeviceCommandQueue(context, device, nullptr), CL_INVALID_COMMAND_QUEUE);
        // As many queues as a device may have can be arguments of one kernel.
        cl_uint most = 0;
        size_t argument_bytes = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_MAX_ON_DEVICE_QUEUES, sizeof most, &most, nullptr), CL_SUCCESS);
        EXPECT_EQ(
            clGetDeviceInfo(device, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof argument_bytes, &argument_bytes, nullptr),
            CL_SUCCESS);
        EXPECT_LE(most * sizeof on_device, argument_bytes);
        cl_uint size = 0, references = 0;
        EXPECT_EQ(clGetCommandQueueInfo(device_queue, CL_QUEUE_SIZE, sizeof size, &size, nullptr), CL_SUCCESS);
        EXPECT_EQ(size, queue_bytes);
        EXPECT_EQ(clRetainCommandQueue(device_queue), CL_SUCCESS);
        EXPECT_EQ(
            clGetCommandQueueInfo(device_queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, nullptr),
            CL_SUCCESS);
        EXPECT_EQ(references, 2u);
        EXPECT_EQ(clReleaseCommandQueue(device_queue), CL_SUCCESS);
        EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_SIZE, sizeof size, &size, nullptr), CL_INVALID_COMMAND_QUEUE);
    });
}

}  // namespace
}  // namespace polder::test
