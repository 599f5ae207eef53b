// Buffers that several devices use: what they contain, and exactly how many bytes moved.
#include "../api/support/peek.h"
#include "support/flow.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace polder::test {
namespace {

constexpr size_t host = 0, first = 1, second = 2;  // devices
constexpr size_t count = 16384;
constexpr size_t bytes = count * sizeof(cl_int);

using Flow = FlowTest;

TEST_F(Flow, PingPongMovesTheBufferOnceEachTurn) {
    const OwnedMem buffer = make_buffer(bytes);
    std::vector<cl_int> expected = numbers(count);
    write(buffer, expected, queues[first]);
    EXPECT_EQ(moved(), bytes);
    OwnedEvent last;
    constexpr size_t turns = 10;
    for (size_t turn = 0; turn < turns; ++turn)
        last = run(turn % 2 ? first : second, "add", count,
                   last ? std::vector<cl_event>{last} : std::vector<cl_event>{}, mem(buffer), cl_int{1});
    EXPECT_EQ(moved(), turns * bytes);
    for (cl_int& value : expected)
        value += turns;
    EXPECT_EQ(read<cl_int>(buffer, count, queues[first]), expected);
    EXPECT_EQ(moved(), bytes);
}

TEST_F(Flow, OneWriterAndTwoReadersMoveTheBufferOncePerReader) {
    const OwnedMem buffer = make_buffer(bytes);
    const OwnedMem sums[] = {make_buffer(4), make_buffer(4)};
    write(buffer, numbers(count), queues[first]);
    moved();
    for (int round = 0; round < 2; ++round) {
        run(second, "add_sum", 1, {}, mem(buffer), mem(sums[0]), cl_int{100});
        run(host, "add_sum", 1, {}, mem(buffer), mem(sums[1]), cl_int{100});
        EXPECT_EQ(moved(), round == 0 ? 2 * bytes : 0);
    }
    EXPECT_EQ(read<cl_int>(sums[0], 1, queues[second])[0], 5050);
    EXPECT_EQ(read<cl_int>(sums[1], 1, queues[host])[0], 5050);
}

TEST_F(Flow, HalvesWrittenOnTwoDevicesAtOnceStayWhereTheyAre) {
    const OwnedMem buffer = make_buffer(bytes);
    const OwnedMem left = sub_buffer(buffer, 0, bytes / 2);
    const OwnedMem right = sub_buffer(buffer, bytes / 2, bytes / 2);
    std::vector<cl_int> expected = numbers(count);
    write(buffer, expected, queues[host]);
    moved();
    run(first, "add", count / 2, {}, mem(left), cl_int{1});
    run(second, "add", count / 2, {}, mem(right), cl_int{2});
    EXPECT_EQ(moved(), bytes);
    run(first, "add", count / 2, {}, mem(left), cl_int{1});
    run(second, "add", count / 2, {}, mem(right), cl_int{2});
    EXPECT_EQ(moved(), 0u);
    for (size_t i = 0; i < count; ++i)
        expected[i] += i < count / 2 ? 2 : 4;
    EXPECT_EQ(read<cl_int>(buffer, count, queues[first]), expected);
    EXPECT_EQ(moved(), bytes);
}

// PoCL's issue 1969.
TEST_F(Flow, OverlappingSubBuffersShareTheirCommonBytes) {
    const OwnedMem buffer = make_buffer(bytes);
    const OwnedMem low = sub_buffer(buffer, 0, bytes / 4 * 3);
    const OwnedMem high = sub_buffer(buffer, bytes / 4, bytes / 4 * 3);
    std::vector<cl_int> expected = numbers(count);
    write(buffer, expected, queues[first]);
    moved();
    OwnedEvent done = run(first, "add", count / 4 * 3, {}, mem(low), cl_int{1});
    EXPECT_EQ(moved(), 0u);
    done = run(second, "add", count / 4 * 3, {done}, mem(high), cl_int{10});
    EXPECT_EQ(moved(), bytes / 4 * 3);
    done = run(first, "add", count / 4 * 3, {done}, mem(low), cl_int{100});
    EXPECT_EQ(moved(), bytes / 2);  // the bytes of `low` that `high` changed
    done = run(host, "add", count, {done}, mem(buffer), cl_int{1000});
    EXPECT_EQ(moved(), bytes);
    for (size_t i = 0; i < count; ++i)
        expected[i] += 1000 + (i < count / 4 * 3 ? 101 : 0) + (i >= count / 4 ? 10 : 0);
    EXPECT_EQ(read<cl_int>(buffer, count, queues[host]), expected);
    EXPECT_EQ(moved(), 0u);
}

TEST_F(Flow, FourByteWriteIntoALargeBufferMovesFourBytes) {
    constexpr size_t large = size_t{64} << 20;
    const OwnedMem buffer = make_buffer(large);
    const OwnedMem seen = make_buffer(4);
    const OwnedMem part = sub_buffer(buffer, size_t{1} << 20, 4096);
    const cl_int zero = 0;
    ASSERT_EQ(clEnqueueFillBuffer(queues[first], buffer, &zero, 4, 0, large, 0, nullptr, nullptr), CL_SUCCESS);
    run(second, "copy_first", 1, {}, mem(buffer), mem(seen));
    EXPECT_EQ(moved(), large);
    const cl_int value = 42;
    ASSERT_EQ(clEnqueueWriteBuffer(queues[first], buffer, CL_TRUE, size_t{1} << 20, 4, &value, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(moved(), 4u);
    run(second, "copy_first", 1, {}, mem(part), mem(seen));
    EXPECT_EQ(moved(), 4u);
    EXPECT_EQ(read<cl_int>(seen, 1, queues[second])[0], 42);
}

TEST_F(Flow, OverwriteCopiesNothingIn) {
    const OwnedMem buffer = make_buffer(bytes);
    write(buffer, numbers(count), queues[first]);
    moved();
    const cl_int value = 3;
    ASSERT_EQ(clEnqueueFillBuffer(queues[second], buffer, &value, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), 0u);
    run(second, "add", count, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(moved(), 0u);
    EXPECT_EQ(read<cl_int>(buffer, count, queues[second]), std::vector<cl_int>(count, 4));
}

TEST_F(Flow, ArgumentsOnlyReadOrNeverTouchedCostNoMore) {
    const OwnedMem from = make_buffer(bytes);
    const OwnedMem to = make_buffer(4);
    const OwnedMem data = make_buffer(bytes);
    write(from, numbers(count), queues[first]);
    moved();
    run(second, "add_sum", 1, {}, mem(from), mem(to), cl_int{10});
    EXPECT_EQ(moved(), bytes);
    run(first, "add_sum", 1, {}, mem(from), mem(to), cl_int{10});  // still valid there
    EXPECT_EQ(moved(), 4u);                                        // of `to`, of which a part might be written
    run(second, "ignore", 16, {}, mem(from), mem(data));
    write(from, numbers(count), queues[first]);
    moved();
    run(second, "ignore", 16, {}, mem(from), mem(data));
    EXPECT_EQ(moved(), 0u);
}

// If the reader were planned at its enqueue, it would see the bytes from before the write.
TEST_F(Flow, CommandThatWaitsForAUserEventSeesALaterWriteOnAnotherDevice) {
    const OwnedMem buffer = make_buffer(bytes);
    const OwnedMem seen = make_buffer(4);
    write(buffer, std::vector<cl_int>(count, 1), queues[second]);
    moved();
    const OwnedEvent gate = make_user_event();
    run(second, "copy_first", 1, {gate}, mem(buffer), mem(seen));
    write(buffer, std::vector<cl_int>(count, 2), queues[first]);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(moved(), 2 * bytes);  // from the application, and between the devices
    EXPECT_EQ(read<cl_int>(seen, 1, queues[second])[0], 2);
}

TEST_F(Flow, CommandsBehindAUserEventSeeEachOtherAcrossThreeQueues) {
    const OwnedMem buffer = make_buffer(bytes);
    write(buffer, std::vector<cl_int>(count, 1), queues[host]);
    const OwnedEvent gate = make_user_event();
    const OwnedEvent one = run(first, "add", count, {gate}, mem(buffer), cl_int{10});
    const OwnedEvent two = run(second, "add", count, {one}, mem(buffer), cl_int{100});
    const OwnedEvent three = run(host, "add", count, {two}, mem(buffer), cl_int{1000});
    const cl_int value = 5;
    ASSERT_EQ(clEnqueueFillBuffer(make_queue(devices[second]), buffer, &value, 4, 0, bytes, 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, three.in()), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, count, queues[host]), std::vector<cl_int>(count, 1115));
}

TEST_F(Flow, MapOnOneDeviceWhileAnotherReads) {
    const OwnedMem buffer = make_buffer(bytes);
    const OwnedMem sum = make_buffer(4);
    write(buffer, numbers(count), queues[first]);
    moved();
    cl_int error = CL_INVALID_VALUE;
    auto* const mapped = static_cast<cl_int*>(
        clEnqueueMapBuffer(queues[first], buffer, CL_TRUE, CL_MAP_READ, 0, bytes / 2, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(moved(), bytes / 2);
    run(second, "add_sum", 1, {}, mem(buffer), mem(sum), cl_int{100});
    EXPECT_EQ(moved(), bytes);
    for (cl_int i = 0; i < cl_int{count / 2}; ++i)
        ASSERT_EQ(mapped[i], i + 1);
    ASSERT_EQ(clEnqueueUnmapMemObject(queues[first], buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(sum, 1, queues[second])[0], 5050);
}

TEST_F(Flow, MapForWritingMakesOnlyTheMappedBytesNew) {
    const OwnedMem buffer = make_buffer(bytes);
    std::vector<cl_int> expected = numbers(count);
    write(buffer, expected, queues[first]);
    moved();
    cl_int error = CL_INVALID_VALUE;
    auto* const mapped = static_cast<cl_int*>(
        clEnqueueMapBuffer(queues[first], buffer, CL_TRUE, CL_MAP_WRITE, 400, 40, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(moved(), 40u);
    mapped[0] = expected[100] = -1;
    ASSERT_EQ(clEnqueueUnmapMemObject(queues[first], buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), 0u);
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(moved(), 40u);
    for (cl_int& value : expected)
        ++value;
    EXPECT_EQ(read<cl_int>(buffer, count, queues[first]), expected);
}

// The buffer was never written. The application has mapped bytes between a rectangle's rows when the rectangle is written.
TEST_F(Flow, MappedBytesBetweenTheRowsOfARectangleAreTheApplications) {
    constexpr size_t pitch = 2048, row = 1024, rows = bytes / pitch;
    static_assert(rows > 16, "the whole span of few rows is never noted");
    const OwnedMem buffer = make_buffer(bytes);
    cl_int error = CL_INVALID_VALUE;
    auto* const mapped = static_cast<cl_uchar*>(clEnqueueMapBuffer(queues[first], buffer, CL_TRUE, CL_MAP_WRITE, row,
                                                                   pitch - row, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    const std::vector<cl_uchar> source(row * rows, 3);
    const size_t origin[3] = {0, 0, 0}, region[3] = {row, rows, 1};
    ASSERT_EQ(clEnqueueWriteBufferRect(queues[first], buffer, CL_TRUE, origin, origin, region, pitch, 0, row, 0,
                                       source.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    std::fill_n(mapped, pitch - row, cl_uchar{9});
    ASSERT_EQ(
        clEnqueueMigrateMemObjects(queues[first], 1, buffer.in(), CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(clFinish(queues[first]), CL_SUCCESS);
    EXPECT_EQ(std::count(mapped, mapped + (pitch - row), cl_uchar{9}), std::ptrdiff_t{pitch - row});
    ASSERT_EQ(clEnqueueUnmapMemObject(queues[first], buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    const auto seen = read<cl_uchar>(buffer, bytes, queues[first]);
    for (size_t i = 0; i < bytes; ++i)
        if (i % pitch < row || i < pitch) {
            ASSERT_EQ(seen[i], i % pitch < row ? 3 : 9) << i;
        }
}

TEST_F(Flow, RectangleCopyMovesOnlyItsRows) {
    constexpr size_t pitch = 256, rows = 32, row = 64;
    const OwnedMem from = make_buffer(bytes);
    const OwnedMem to = make_buffer(bytes);
    const std::vector<cl_int> values = numbers(count);
    write(from, values, queues[first]);
    std::vector<cl_int> expected(count, 9);
    write(to, expected, queues[second]);
    moved();
    const size_t from_origin[] = {32, 1, 0}, to_origin[] = {128, 2, 0}, region[] = {row, rows, 1};
    ASSERT_EQ(clEnqueueCopyBufferRect(queues[second], from, to, from_origin, to_origin, region, pitch, 0, pitch, 0, 0,
                                      nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(moved(), row * rows);
    for (size_t y = 0; y < rows; ++y)
        std::copy_n(values.begin() + static_cast<ptrdiff_t>((32 + (y + 1) * pitch) / 4), row / 4,
                    expected.begin() + static_cast<ptrdiff_t>((128 + (y + 2) * pitch) / 4));
    EXPECT_EQ(read<cl_int>(to, count, queues[second]), expected);
    EXPECT_EQ(moved(), bytes);
    // The bytes beside the rectangle are still valid where they were.
    run(first, "add", count, {}, mem(from), cl_int{0});
    EXPECT_EQ(moved(), 0u);
}

TEST_F(Flow, KernelThatWritesAPartKeepsTheRest) {
    const OwnedMem buffer = make_buffer(bytes);
    std::vector<cl_int> expected = numbers(count);
    write(buffer, expected, queues[first]);
    moved();
    run(second, "set_every_second", count / 2, {}, mem(buffer), cl_int{-3});
    EXPECT_EQ(moved(), bytes);
    for (size_t i = 0; i < count; i += 2)
        expected[i] = -3;
    EXPECT_EQ(read<cl_int>(buffer, count, queues[first]), expected);
}

TEST_F(Flow, ReleasingBuffersAndEventsWithWorkInFlightIsSafe) {
    for (int round = 0; round < 50; ++round) {
        const OwnedMem sum = make_buffer(4);
        {
            const OwnedMem buffer = make_buffer(bytes);
            const cl_int value = round;
            ASSERT_EQ(clEnqueueFillBuffer(queues[first], buffer, &value, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
            OwnedEvent filled;
            ASSERT_EQ(clEnqueueMarkerWithWaitList(queues[first], 0, nullptr, filled.out()), CL_SUCCESS);
            run(second, "add_sum", 1, {filled}, mem(buffer), mem(sum), cl_int{100});
        }
        EXPECT_EQ(read<cl_int>(sum, 1, queues[second])[0], 100 * round);
    }
}

TEST_F(Flow, TwoContextsMoveTheirOwnBuffers) {
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext other = clCreateContext(nullptr, 3, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const OwnedQueue other_queue = clCreateCommandQueueWithProperties(other, devices[first], nullptr, &error);
    const OwnedMem theirs = clCreateBuffer(other, CL_MEM_READ_WRITE, bytes, nullptr, &error);
    const OwnedMem ours = make_buffer(bytes);
    write(ours, std::vector<cl_int>(count, 1), queues[first]);
    write(theirs, std::vector<cl_int>(count, 2), other_queue);
    EXPECT_EQ(moved(), bytes);
    run(second, "add", count, {}, mem(ours), cl_int{1});
    EXPECT_EQ(read<cl_int>(ours, count, queues[second]), std::vector<cl_int>(count, 2));
    EXPECT_EQ(read<cl_int>(theirs, count, other_queue), std::vector<cl_int>(count, 2));
    EXPECT_EQ(moved(), 2 * bytes);
}

TEST_F(Flow, SubDevicesOfOneMemoryMoveNothingBetweenThem) {
    const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_uint available = 0;
    if (clCreateSubDevices(devices[first], by_one, 0, nullptr, &available) != CL_SUCCESS || available < 2)
        GTEST_SKIP() << "the device has a single compute unit";
    std::vector<cl_device_id> parts(available);
    ASSERT_EQ(clCreateSubDevices(devices[first], by_one, available, parts.data(), nullptr), CL_SUCCESS);
    cl_int error = CL_INVALID_VALUE;
    context = clCreateContext(nullptr, available, parts.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    devices = parts;
    program = build(flow_kernels);
    queues = {make_queue(parts[0]), make_queue(parts[1]), OwnedQueue{}};
    const OwnedMem buffer = make_buffer(bytes);
    write(buffer, std::vector<cl_int>(count, 1), queues[0]);
    for (size_t turn = 0; turn < 4; ++turn) {
        run(turn % 2, "add", count, {}, mem(buffer), cl_int{1});
        ASSERT_EQ(clFinish(queues[turn % 2]), CL_SUCCESS);
    }
    EXPECT_EQ(moved(), bytes);  // only the application's contents
    EXPECT_EQ(read<cl_int>(buffer, count, queues[1]), std::vector<cl_int>(count, 5));
    queues = {};
    program = {};
    context = {};
    for (cl_device_id part : parts)
        EXPECT_EQ(clReleaseDevice(part), CL_SUCCESS);
}

// One half is read at once. The other half is where a native kernel runs until the first has been seen.
TEST_F(Flow, ACommandOfSeveralPartsStartsWithItsFirstOne) {
    struct Gate {
        void* half;
        std::atomic<bool>* open;
        static void CL_CALLBACK wait(void* block) {
            const auto& gate = *static_cast<const Gate*>(block);
            while (!gate.open->load())
                std::this_thread::yield();
            std::fill_n(static_cast<cl_int*>(gate.half), count / 2, 9);
        }
    };
    const OwnedMem buffer = make_buffer(bytes);
    const OwnedMem right = sub_buffer(buffer, bytes / 2, bytes / 2);
    write(buffer, std::vector<cl_int>(count, 5), queues[first]);

    std::atomic<bool> open{false};
    Gate gate{nullptr, &open};
    const cl_mem used[] = {mem(right)};
    const void* where[] = {&gate.half};
    ASSERT_EQ(clEnqueueNativeKernel(queues[host], Gate::wait, &gate, sizeof gate, 1, used, where, 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clFlush(queues[host]), CL_SUCCESS);

    const OwnedQueue profiled = make_queue(devices[first], CL_QUEUE_PROFILING_ENABLE);
    std::vector<cl_int> values(count, 0);
    OwnedEvent read_done;
    ASSERT_EQ(clEnqueueReadBuffer(profiled, buffer, CL_FALSE, 0, bytes, values.data(), 0, nullptr, read_done.out()),
              CL_SUCCESS);
    OwnedEvent after_first_part;
    ASSERT_EQ(clFlush(profiled), CL_SUCCESS);
    for (int i = 0; i < 20'000 && peek(values[count / 2 - 1]) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(peek(values[count / 2 - 1]), 5);
    const OwnedQueue clock = make_queue(devices[first], CL_QUEUE_PROFILING_ENABLE);
    ASSERT_EQ(clEnqueueMarkerWithWaitList(clock, 0, nullptr, after_first_part.out()), CL_SUCCESS);
    ASSERT_EQ(clFinish(clock), CL_SUCCESS);
    open = true;
    ASSERT_EQ(clWaitForEvents(1, read_done.in()), CL_SUCCESS);
    EXPECT_EQ(values[count - 1], 9);
    // Another implementation's clock is the host's only roughly. (POCL_DEVICES does not stay set where that one is PoCL.)
    if (!std::getenv("POCL_PROXY0_PARAMETERS")) {
        EXPECT_LE(profiling_ns(read_done, CL_PROFILING_COMMAND_START),
                  profiling_ns(after_first_part, CL_PROFILING_COMMAND_QUEUED));
    }
    EXPECT_GE(profiling_ns(read_done, CL_PROFILING_COMMAND_END),
              profiling_ns(after_first_part, CL_PROFILING_COMMAND_END));
}

// The simulated devices of this test have 128 MiB.
bool has_memory_for(cl_device_id device, size_t size) {
    cl_ulong memory = 0;
    EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, nullptr), CL_SUCCESS);
    return memory >= size;
}

TEST_F(Flow, OutOfDeviceMemoryIsAnErrorCodeAndTheContextGoesOn) {
    constexpr size_t large = size_t{160} << 20;
    if (has_memory_for(devices[first], large))
        GTEST_SKIP() << "the device has memory for the buffer";
    const OwnedMem kept = make_buffer(bytes);
    const OwnedMem refused = make_buffer(large);  // more than the device has, less than the processor
    const cl_int value = 1;
    ASSERT_EQ(clEnqueueFillBuffer(queues[first], kept, &value, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueFillBuffer(queues[first], refused, &value, 4, 0, large, 0, nullptr, nullptr),
              CL_MEM_OBJECT_ALLOCATION_FAILURE);
    // The refused buffer works elsewhere, and its parts here.
    ASSERT_EQ(clEnqueueFillBuffer(queues[host], refused, &value, 4, 0, large, 0, nullptr, nullptr), CL_SUCCESS);
    const OwnedMem part = sub_buffer(refused, large / 2, bytes);
    run(first, "add", count, {}, mem(part), cl_int{1});
    EXPECT_EQ(read<cl_int>(part, count, queues[first]), std::vector<cl_int>(count, 2));
    EXPECT_EQ(read<cl_int>(kept, count, queues[first]), std::vector<cl_int>(count, 1));
}

// With POCL_DEBUG=memory the report is printed as well.
TEST_F(Flow, OutOfDeviceMemoryIsReportedToTheContext) {
    constexpr size_t large = size_t{48} << 20;
    constexpr size_t huge = size_t{160} << 20;  // more than the device has
    if (has_memory_for(devices[first], huge))
        GTEST_SKIP() << "the device has memory for the buffer";
    std::string reported;
    const auto notify = [](const char* text, const void*, size_t, void* user) {
        static_cast<std::string*>(user)->append(text);
    };
    cl_int error = CL_INVALID_VALUE;
    queues = {};
    context = clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), notify, &reported, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    for (size_t i = 0; i < devices.size(); ++i)
        queues[i] = make_queue(devices[i]);
    program = build(flow_kernels);
    const OwnedKernel ignore = make_kernel(program, "ignore");
    const OwnedMem live[] = {make_buffer(large), make_buffer(large)};
    constexpr size_t most = size_t{140} << 20;
    const OwnedMem wanted = make_buffer(huge);
    const OwnedMem part = sub_buffer(wanted, 4096, most);
    std::vector<cl_int> values(huge / sizeof(cl_int), 3);
    const cl_int value = 7;
    for (const OwnedMem& buffer : live)
        ASSERT_EQ(clEnqueueFillBuffer(queues[first], buffer, &value, 4, 0, large, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(reported, "");

    const auto refused = [&](const char* command, cl_int result, size_t asked, const std::string& logged) {
        SCOPED_TRACE(command);
        const std::string report = "out of memory in space 1: asked for " + std::to_string(asked) + " bytes";
        EXPECT_EQ(result, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        for (const std::string& text : {report, std::string("; free "), std::string("largest free block "),
                                        "live " + std::to_string(2 * large) + " in 2 blocks"}) {
            EXPECT_NE(reported.find(text), std::string::npos) << text << " is not in: " << reported;
            EXPECT_TRUE(!std::getenv("POCL_DEBUG") || logged.find(text) != std::string::npos)
                << text << " is not in: " << logged;
        }
        reported.clear();
    };
    // The error is reported for a command on the whole buffer and for one on its sub-buffer.
    for (const auto& [buffer, size] : {std::pair{mem(wanted), huge}, std::pair{mem(part), most}}) {
        const auto try_it = [&](const char* command, const auto& enqueue) {
            testing::internal::CaptureStderr();
            const cl_int result = enqueue();
            refused(command, result, size, testing::internal::GetCapturedStderr());
        };
        const cl_command_queue full = queues[first];
        try_it("write", [&] {
            return clEnqueueWriteBuffer(full, buffer, CL_TRUE, 0, size, values.data(), 0, nullptr, nullptr);
        });
        try_it("fill", [&] { return clEnqueueFillBuffer(full, buffer, &value, 4, 0, size, 0, nullptr, nullptr); });
        try_it("migrate", [&] { return clEnqueueMigrateMemObjects(full, 1, &buffer, 0, 0, nullptr, nullptr); });
        try_it("kernel", [&] {
            const size_t items = count;
            EXPECT_EQ(clSetKernelArg(ignore, 0, sizeof buffer, &buffer), CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(ignore, 1, sizeof buffer, &buffer), CL_SUCCESS);
            return clEnqueueNDRangeKernel(full, ignore, 1, nullptr, &items, nullptr, 0, nullptr, nullptr);
        });
    }
    // A few of its bytes need memory for these bytes alone.
    EXPECT_EQ(clEnqueueFillBuffer(queues[first], wanted, &value, 4, huge / 2, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    // Commands that need no memory there succeed: an argument that is never accessed, a read of bytes that were never written.
    EXPECT_EQ(clSetKernelArg(ignore, 0, sizeof(cl_mem), wanted.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(ignore, 1, sizeof(cl_mem), live[0].in()), CL_SUCCESS);
    const size_t items = count;
    EXPECT_EQ(clEnqueueNDRangeKernel(queues[first], ignore, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clEnqueueReadBuffer(queues[first], wanted, CL_TRUE, 0, bytes, values.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(live[0], count, queues[first]), std::vector<cl_int>(count, 7));
    EXPECT_EQ(reported, "");
}

TEST_F(Flow, AMapUpdatesTheApplicationsMemory) {
    std::vector<std::byte> memory(bytes + 256);
    for (const size_t misalignment : {size_t{0}, size_t{4}}) {
        auto address = (reinterpret_cast<uintptr_t>(memory.data()) + 127) & ~uintptr_t{127};
        auto* const mine = reinterpret_cast<cl_int*>(address + misalignment);
        std::fill_n(mine, count, 5);
        const OwnedMem buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, mine);
        run(second, "add", count, {}, mem(buffer), cl_int{1});
        cl_int error = CL_INVALID_VALUE;
        void* const mapped =
            clEnqueueMapBuffer(queues[second], buffer, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(mapped, mine);
        EXPECT_EQ(moved(), 2 * bytes);
        EXPECT_EQ(std::vector<cl_int>(mine, mine + count), std::vector<cl_int>(count, 6));
        ASSERT_EQ(clEnqueueUnmapMemObject(queues[second], buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(queues[second]), CL_SUCCESS);
    }
}

}  // namespace
}  // namespace polder::test
