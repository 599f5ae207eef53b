// Command buffers: recorded once, enqueued many times, updated in between; on every device of the context.
#include "support/command_buffer.h"

#include <array>
#include <atomic>
#include <numeric>
#include <thread>

namespace polder::test {
namespace {

TEST_F(CommandBuffers, Enqueued_ExecuteEveryCommandInTheOrderOfRecording) {
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem c = make_buffer(bytes), d = make_buffer(bytes);
        OwnedCommandBuffer buffer = make(on);
        OwnedKernel add = with("add", c, 5), twice = with("twice", c, d);
        EXPECT_EQ(record_fill(buffer, c, 7, bytes), CL_SUCCESS);
        EXPECT_EQ(record(buffer, add), CL_SUCCESS);
        EXPECT_EQ(record_barrier(buffer), CL_SUCCESS);
        EXPECT_EQ(record(buffer, twice), CL_SUCCESS);
        EXPECT_EQ(record_copy(buffer, d, c, {0, bytes / 2, bytes / 2}), CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
        for (int round = 0; round < 3; ++round) {
            ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
            std::vector<cl_uint> expected(count, 24);
            EXPECT_EQ(read<cl_uint>(d, count, on), expected);
            std::fill_n(expected.begin(), count / 2, 12);
            EXPECT_EQ(read<cl_uint>(c, count, on), expected);
        }
    }
}

// The bytes that a replay needs come from the device that wrote them last, and its results are the newest ones.
TEST_F(CommandBuffers, OnDevicesInTurns_SeeEachOthersBytes) {
    OwnedKernel add = with("add", a, 1);
    std::vector<OwnedQueue> queues;
    std::vector<OwnedCommandBuffer> buffers;
    for (const cl_device_id device : devices) {
        queues.push_back(make_queue(device));
        buffers.push_back(make(queues.back()));
        ASSERT_EQ(record(buffers.back(), add), CL_SUCCESS);
        ASSERT_EQ(record(buffers.back(), add), CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffers.back()), CL_SUCCESS);
    }
    OwnedEvent last;
    for (int round = 0; round < 4; ++round)
        for (const OwnedCommandBuffer& buffer : buffers) {
            OwnedEvent event;
            ASSERT_EQ(functions().Enqueue(0, nullptr, buffer, last ? 1 : 0, last ? last.in() : nullptr, event.out()),
                      CL_SUCCESS);
            last = std::move(event);
        }
    ASSERT_EQ(clWaitForEvents(1, last.in()), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 1 + 8 * static_cast<cl_uint>(devices.size())));
}

// Bytes that a command reads are made resident, also when a later command of the buffer overwrites all or some of them.
TEST_F(CommandBuffers, BytesThatAreReadAndThenOverwritten_AreReadFirst) {
    const cl_uint nine = 9;
    for (const cl_device_id device : devices)
        for (const size_t filled : {bytes, bytes / 2}) {
            OwnedQueue on = make_queue(device);
            write(a, std::vector<cl_uint>(count, 3));
            OwnedKernel twice = with("twice", a, b);
            OwnedCommandBuffer buffer = make(on);
            EXPECT_EQ(record(buffer, twice), CL_SUCCESS);
            EXPECT_EQ(record_fill(buffer, a, nine, filled), CL_SUCCESS);
            ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
            ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
            EXPECT_EQ(read<cl_uint>(b, count, on), std::vector<cl_uint>(count, 6));
            std::vector<cl_uint> expected(count, 3);
            std::fill_n(expected.begin(), filled / sizeof nine, nine);
            EXPECT_EQ(read<cl_uint>(a, count, on), expected);
        }
}

// Sub-buffers of one parent, in any mix with the parent itself.
TEST_F(CommandBuffers, OnPartsOfABuffer_KeepTheOtherBytes) {
    OwnedMem half = sub_buffer(a, bytes / 2, bytes / 2);
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        write(a, std::vector<cl_uint>(count, 1));
        OwnedCommandBuffer buffer = make(on);
        OwnedKernel whole = with("add", a, 1), part = with("add", half, 100);
        EXPECT_EQ(record_fill(buffer, half, 9, 64), CL_SUCCESS);
        EXPECT_EQ(record(buffer, part, count / 2), CL_SUCCESS);
        EXPECT_EQ(record(buffer, whole), CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        std::vector<cl_uint> expected(count, 2);
        std::fill(expected.begin() + count / 2, expected.end(), 102);
        std::fill_n(expected.begin() + count / 2, 16, 110);
        EXPECT_EQ(read<cl_uint>(a, count, on), expected);
    }
}

TEST_F(CommandBuffers, CopyRects_KeepTheBytesBetweenRows) {
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        std::vector<cl_uint> from(count), to(count, 5);
        std::iota(from.begin(), from.end(), 0u);
        write(a, from);
        write(b, to);
        OwnedCommandBuffer buffer = make(on);
        const size_t origin[3] = {0, 0, 0}, target[3] = {16, 2, 0}, region[3] = {16, 4, 1};
        EXPECT_EQ(functions().CopyRect(buffer, nullptr, nullptr, a, b, origin, target, region, 64, 0, 64, 0, 0, nullptr,
                                       nullptr, nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        for (size_t y = 0; y < 4; ++y)
            for (size_t x = 0; x < 4; ++x)
                to[(y + 2) * 16 + 4 + x] = from[y * 16 + x];
        EXPECT_EQ(read<cl_uint>(b, count, on), to);
    }
}

TEST_F(CommandBuffers, RecordedArguments_StayWhenTheKernelChanges) {
    OwnedKernel add = with("add", a, 10);
    OwnedCommandBuffer buffer = make(queue);
    ASSERT_EQ(record(buffer, add), CL_SUCCESS);
    const cl_uint other = 1000;
    ASSERT_EQ(clSetKernelArg(add, 1, sizeof other, &other), CL_SUCCESS);
    ASSERT_EQ(record(buffer, add), CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    add.reset();
    program.reset();
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 1011));
}

TEST_F(CommandBuffers, BehindAUserEvent_ExecuteWhatWasRecordedWhenTheyWereEnqueued) {
    OwnedKernel add = with("add", a, 10);
    cl_mutable_command_khr command = nullptr;
    OwnedCommandBuffer buffer = make_mutable(queue, add, command);
    OwnedEvent gate = make_user_event(), done;
    ASSERT_EQ(functions().Enqueue(0, nullptr, buffer, 1, gate.in(), done.out()), CL_SUCCESS);
    const cl_uint hundred = 100;
    ASSERT_EQ(update_argument(buffer, command, {1, sizeof hundred, &hundred}), CL_SUCCESS);
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    buffer.reset();
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 111));
    cl_command_type type = 0;
    EXPECT_EQ(clGetEventInfo(done, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, static_cast<cl_command_type>(CL_COMMAND_COMMAND_BUFFER_KHR));
}

TEST_F(CommandBuffers, OnAnotherQueueOfTheDevice_ExecuteThere) {
    OwnedQueue other = make_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE);
    OwnedKernel add = with("add", a, 10);
    OwnedCommandBuffer buffer = make(queue, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR);
    for (int i = 0; i < 100; ++i)
        ASSERT_EQ(record(buffer, add), CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    OwnedEvent event;
    ASSERT_EQ(functions().Enqueue(1, other.out(), buffer, 0, nullptr, event.out()), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 1001));
    cl_ulong start = 0, end = 0;
    EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr), CL_SUCCESS);
    EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr), CL_SUCCESS);
    EXPECT_LT(start, end);
}

TEST_F(CommandBuffers, WithoutCommands_CompleteInOrder) {
    OwnedCommandBuffer buffer = make(queue);
    EXPECT_EQ(record_barrier(buffer), CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    OwnedEvent event;
    ASSERT_EQ(enqueue(buffer, event.out()), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
}

TEST_F(CommandBuffers, Updated_RunWithTheNewArgumentsAndSizes) {
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        write(b, std::vector<cl_uint>(count, 0));
        OwnedKernel ids = make_kernel(program, "ids");
        ASSERT_EQ(clSetKernelArg(ids, 0, sizeof(cl_mem), a.in()), CL_SUCCESS);
        OwnedCommandBuffer buffer = make(on, CL_COMMAND_BUFFER_MUTABLE_KHR);
        cl_mutable_command_khr command = nullptr;
        const size_t global = 64, local = 4, offset = 8;
        ASSERT_EQ(functions().Kernel(buffer, nullptr, nullptr, ids, 1, nullptr, &global, &local, 0, nullptr, nullptr,
                                     &command),
                  CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        const size_t fewer = 32, wider = 8;
        const cl_mutable_dispatch_arg_khr argument{0, sizeof(cl_mem), b.in()};
        DispatchConfig config;
        config.command = command;
        config.num_args = 1;
        config.arg_list = &argument;
        config.global_work_size = &fewer;
        config.local_work_size = &wider;
        config.global_work_offset = &offset;
        ASSERT_EQ(update(buffer, config), CL_SUCCESS);
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        std::vector<cl_uint> first(64), second(count, 0);
        for (cl_uint i = 0; i < 64; ++i)
            first[i] = i + 4000;
        for (cl_uint i = 8; i < 40; ++i)
            second[i] = i + 8000;
        EXPECT_EQ(read<cl_uint>(a, 64, on), first);
        EXPECT_EQ(read<cl_uint>(b, count, on), second);
        size_t now = 0;
        EXPECT_EQ(functions().CommandInfo(command, CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR, sizeof now, &now, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(now, fewer);
    }
}

// Allocations and plain host memory, as arguments of kernels and of the commands on pointers.
TEST_F(CommandBuffers, OnSharedVirtualMemory_UseItWhereItIs) {
    cl_device_svm_capabilities svm = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr), CL_SUCCESS);
    if (svm == 0)
        GTEST_SKIP() << "the first device has no shared virtual memory";
    auto* const shared = static_cast<cl_uint*>(clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0));
    ASSERT_NE(shared, nullptr);
    std::vector<cl_uint> host(count, 0);
    OwnedKernel add = make_kernel(program, "add");
    const cl_uint five = 5;
    ASSERT_EQ(clSetKernelArgSVMPointer(add, 0, shared + count / 2), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(add, 1, sizeof five, &five), CL_SUCCESS);
    OwnedCommandBuffer buffer = make(queue);
    const auto& f = functions();
    EXPECT_EQ(f.SvmFill(buffer, nullptr, nullptr, shared, &five, sizeof five, bytes, 0, nullptr, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(record(buffer, add, count / 2), CL_SUCCESS);
    EXPECT_EQ(f.SvmCopy(buffer, nullptr, nullptr, host.data(), shared, bytes, 0, nullptr, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(f.SvmCopy(buffer, nullptr, nullptr, shared, shared + count / 2, bytes / 2, 0, nullptr, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(f.SvmCopy(buffer, nullptr, nullptr, shared, shared + 1, bytes / 2, 0, nullptr, nullptr, nullptr),
              CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(f.SvmFill(buffer, nullptr, nullptr, nullptr, &five, sizeof five, bytes, 0, nullptr, nullptr, nullptr),
              CL_INVALID_VALUE);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
        std::vector<cl_uint> expected(count, 5);
        std::fill(expected.begin() + count / 2, expected.end(), 10);
        EXPECT_EQ(host, expected);
        std::vector<cl_uint> now(count);
        ASSERT_EQ(clEnqueueSVMMemcpy(queue, CL_TRUE, now.data(), shared, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(now, std::vector<cl_uint>(count, 10));
    }
    buffer.reset();
    clSVMFree(context, shared);
}

TEST_F(CommandBuffers, WithLocalMemory_GetTheSizeOfTheLastUpdate) {
    OwnedKernel locals = make_kernel(program, "locals");
    ASSERT_EQ(clSetKernelArg(locals, 0, sizeof(cl_mem), a.in()), CL_SUCCESS);
    OwnedCommandBuffer buffer = make(queue, CL_COMMAND_BUFFER_MUTABLE_KHR);
    cl_mutable_command_khr command = nullptr;
    const size_t global = 64, local = 16;
    // The size of the local argument is still missing.
    ASSERT_EQ(functions().Kernel(buffer, nullptr, nullptr, locals, 1, nullptr, &global, &local, 0, nullptr, nullptr,
                                 &command),
              CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    EXPECT_EQ(state(buffer), 2u);  // finalized
    EXPECT_EQ(enqueue(buffer), CL_INVALID_OPERATION);
    ASSERT_EQ(update_argument(buffer, command, {1, local * sizeof(cl_uint), nullptr}), CL_SUCCESS);
    EXPECT_EQ(state(buffer), static_cast<cl_uint>(CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR));
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    std::vector<cl_uint> expected(global);
    for (cl_uint i = 0; i < global; ++i)
        expected[i] = 15 - i % 16;
    EXPECT_EQ(read<cl_uint>(a, global), expected);
}

TEST_F(CommandBuffers, WithSeveralCommandsThatLackArguments_AreExecutableAfterTheLastUpdate) {
    OwnedKernel add = make_kernel(program, "add");
    ASSERT_EQ(clSetKernelArg(add, 0, sizeof(cl_mem), a.in()), CL_SUCCESS);
    OwnedCommandBuffer buffer = make(queue, CL_COMMAND_BUFFER_MUTABLE_KHR);
    std::array<cl_mutable_command_khr, 2> commands{};
    for (cl_mutable_command_khr& command : commands)
        ASSERT_EQ(record(buffer, add, count, &command), CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    const cl_uint ten = 10;
    // The second update of the first command completes nothing.
    for (const size_t i : {0, 0, 1}) {
        EXPECT_EQ(state(buffer), 2u);  // finalized
        EXPECT_EQ(enqueue(buffer), CL_INVALID_OPERATION);
        ASSERT_EQ(update_argument(buffer, commands[i], {1, sizeof ten, &ten}), CL_SUCCESS);
    }
    EXPECT_EQ(state(buffer), static_cast<cl_uint>(CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR));
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 21));
}

// Each enqueue executes all of an update or none: both buffers get the same sum.
TEST_F(CommandBuffers, UpdatedBesideEnqueuesOfAnotherThread_AreNeverHalfUpdated) {
    constexpr cl_uint rounds = 300;
    write(b, std::vector<cl_uint>(count, 1));
    OwnedCommandBuffer buffer = make(queue, CL_COMMAND_BUFFER_MUTABLE_KHR | CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR);
    std::array<cl_mutable_command_khr, 2> commands{};
    ASSERT_EQ(record(buffer, with("add", a, 1), count, &commands[0]), CL_SUCCESS);
    ASSERT_EQ(record(buffer, with("add", b, 1), count, &commands[1]), CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    std::atomic<bool> is_updated{true};
    std::thread updating([&] {
        const std::array<cl_uint, 2> types{};
        for (cl_uint value = 2; value < rounds; ++value) {
            const cl_mutable_dispatch_arg_khr argument{1, sizeof value, &value};
            std::array<DispatchConfig, 2> configs{};
            for (size_t i = 0; i < 2; ++i) {
                configs[i].command = commands[i];
                configs[i].num_args = 1;
                configs[i].arg_list = &argument;
            }
            std::array<const void*, 2> list{&configs[0], &configs[1]};
            is_updated = is_updated && functions().Update(buffer, 2, types.data(), list.data()) == CL_SUCCESS;
        }
    });
    for (cl_uint round = 0; round < rounds; ++round)
        EXPECT_EQ(enqueue(buffer), CL_SUCCESS);
    updating.join();
    EXPECT_TRUE(is_updated);
    const auto sums = read<cl_uint>(a, count);
    EXPECT_EQ(sums, read<cl_uint>(b, count));
    EXPECT_GE(sums.front(), rounds);
    // An enqueue from here on has the newest update.
    write(a, std::vector<cl_uint>(count, 0));
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, rounds - 1));
}

TEST_F(CommandBuffers, FailedUpdates_ChangeNothing) {
    OwnedKernel add = with("add", a, 10);
    OwnedCommandBuffer buffer = make(queue, CL_COMMAND_BUFFER_MUTABLE_KHR);
    std::array<cl_mutable_command_khr, 2> commands{};
    ASSERT_EQ(record(buffer, add, count, &commands[0]), CL_SUCCESS);
    const CommandProperty no_field[] = {CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR, 1 << 26, 0};
    EXPECT_EQ(record(buffer, add, count, &commands[1], no_field), CL_INVALID_VALUE);
    const CommandProperty only_sizes[] = {CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR, CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR,
                                          0};
    ASSERT_EQ(record(buffer, add, count, &commands[1], only_sizes), CL_SUCCESS);
    DispatchConfig good, bad;
    const cl_uint hundred = 100;
    const cl_mutable_dispatch_arg_khr argument{1, sizeof hundred, &hundred}, no_argument{7, sizeof hundred, &hundred};
    good.command = commands[0];
    good.num_args = 1;
    good.arg_list = &argument;
    const auto both = [&](cl_uint type = 0) {
        const std::array<cl_uint, 2> types{0, type};
        std::array<const void*, 2> configs{&good, &bad};
        return functions().Update(buffer, 2, types.data(), configs.data());
    };
    EXPECT_EQ(both(), CL_INVALID_OPERATION);  // not finalized
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    EXPECT_EQ(both(), CL_INVALID_MUTABLE_COMMAND_KHR);
    bad.command = commands[1];
    bad.num_args = 1;
    EXPECT_EQ(both(), CL_INVALID_VALUE);
    bad.arg_list = &argument;
    EXPECT_EQ(both(), CL_INVALID_OPERATION);  // its arguments cannot be updated
    bad.command = commands[0];
    bad.arg_list = &no_argument;
    EXPECT_EQ(both(), CL_INVALID_ARG_INDEX);
    bad.arg_list = &argument;
    bad.work_dim = 2;
    EXPECT_EQ(both(), CL_INVALID_OPERATION);
    EXPECT_EQ(both(77), CL_INVALID_VALUE);
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 21));
    bad.work_dim = 1;
    ASSERT_EQ(both(), CL_SUCCESS);
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 131));
}

}  // namespace
}  // namespace polder::test
