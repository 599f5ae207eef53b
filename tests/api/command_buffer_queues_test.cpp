// Command buffers on several queues (cl_khr_command_buffer_multi_device): sync points between queues, events of the whole, copies
// for other queues, bad arguments.
#include "support/command_buffer.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace polder::test {
namespace {

constexpr cl_properties device_side_sync = 1 << 2;
using Point = cl_sync_point_khr;

class CommandBufferQueues : public CommandBuffers {
protected:
    void SetUp() override {
        CommandBuffers::SetUp();
        // Two of the first device, so that there are several whatever the devices are.
        queues.push_back(make_queue(devices.front(), CL_QUEUE_PROFILING_ENABLE));
        for (const cl_device_id device : devices)
            queues.push_back(make_queue(device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));
        handles.assign(queues.begin(), queues.end());
    }
    OwnedCommandBuffer make_on(const std::vector<cl_command_queue>& on, cl_properties flags = 0) {
        const cl_properties properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, flags, 0};
        cl_int error = CL_INVALID_VALUE;
        OwnedCommandBuffer made =
            functions().CreateCommandBuffer(static_cast<cl_uint>(on.size()), on.data(), properties, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    static Point record_on(cl_command_buffer_khr buffer, cl_command_queue on, cl_kernel kernel,
                           const std::vector<Point>& after, cl_mutable_command_khr* handle = nullptr) {
        Point point = ~0u;
        EXPECT_EQ(functions().Kernel(buffer, on, nullptr, kernel, 1, nullptr, &count, nullptr,
                                     static_cast<cl_uint>(after.size()), after.empty() ? nullptr : after.data(), &point,
                                     handle),
                  CL_SUCCESS);
        return point;
    }
    // Each queue in turns doubles one buffer into the other, after a copy back, twice around. Buffer `a` is 1 before.
    void record_relay(cl_command_buffer_khr buffer) {
        OwnedKernel twice = with("twice", a, b);
        std::vector<Point> before;
        for (size_t i = 0; i < 2 * handles.size(); ++i) {
            cl_command_queue on = handles[i % handles.size()];
            const Point doubled = record_on(buffer, on, twice, before);
            Point copied = 0;
            // Back on another queue.
            ASSERT_EQ(functions().Copy(buffer, handles[(i + 1) % handles.size()], nullptr, b, a, 0, 0, bytes, 1,
                                       &doubled, &copied, nullptr),
                      CL_SUCCESS);
            before = {copied};
        }
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    }
    [[nodiscard]] cl_uint after_relays(unsigned relays) const {
        return cl_uint{1} << (2 * static_cast<unsigned>(handles.size()) * relays);
    }
    static cl_int status_of(cl_event event) {
        cl_int status = -1;
        EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        return status;
    }
    cl_int finish_all() {
        for (cl_command_queue on : handles)
            if (const cl_int error = clFinish(on); error != CL_SUCCESS)
                return error;
        return CL_SUCCESS;
    }

    std::vector<OwnedQueue> queues;
    std::vector<cl_command_queue> handles;
};

TEST_F(CommandBufferQueues, SyncPointsOrderCommandsOfDifferentQueues) {
    OwnedCommandBuffer buffer = make_on(handles);
    record_relay(buffer);
    for (unsigned round = 1; round <= 3; ++round) {
        OwnedEvent event;
        ASSERT_EQ(enqueue(buffer, event.out()), CL_SUCCESS);
        ASSERT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
        ASSERT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, after_relays(round))) << round;
    }
}

// Without an event, the first queue's clFinish is enough.
TEST_F(CommandBufferQueues, FinishingTheFirstQueueWaitsForAll) {
    OwnedCommandBuffer buffer = make_on(handles);
    record_relay(buffer);
    ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
    ASSERT_EQ(clFinish(handles[0]), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, after_relays(1)));
}

TEST_F(CommandBufferQueues, WaitsForItsEvents_AndFailsWithThem) {
    OwnedCommandBuffer buffer = make_on(handles);
    record_relay(buffer);
    for (const cl_int status : {CL_COMPLETE, -7}) {
        cl_int error = CL_SUCCESS;
        OwnedEvent gate = clCreateUserEvent(context, &error), event;
        ASSERT_EQ(error, CL_SUCCESS);
        write(a, std::vector<cl_uint>(count, 1));
        ASSERT_EQ(functions().Enqueue(0, nullptr, buffer, 1, gate.in(), event.out()), CL_SUCCESS);
        EXPECT_GT(status_of(event), CL_COMPLETE);
        ASSERT_EQ(clSetUserEventStatus(gate, status), CL_SUCCESS);
        static_cast<void>(clWaitForEvents(1, event.in()));
        EXPECT_EQ(status_of(event) < 0, status < 0);
        ASSERT_EQ(finish_all(), CL_SUCCESS);
        EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, status < 0 ? 1 : after_relays(1)));
    }
}

// A barrier without sync points waits for the commands of all queues, and holds back those of its own.
TEST_F(CommandBufferQueues, BarrierWaitsForEveryQueue) {
    OwnedCommandBuffer buffer = make_on(handles);
    OwnedKernel add = with("add", a, 5), twice = with("twice", a, b);
    record_on(buffer, handles.back(), add, {});
    ASSERT_EQ(functions().Barrier(buffer, handles[0], nullptr, 0, nullptr, nullptr, nullptr), CL_SUCCESS);
    record_on(buffer, handles[0], twice, {});
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    for (cl_uint round = 1; round <= 20; ++round) {
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        ASSERT_EQ(clFinish(handles[0]), CL_SUCCESS);
        ASSERT_EQ(read<cl_uint>(b, count), std::vector<cl_uint>(count, 2 * (1 + 5 * round)));
    }
}

TEST_F(CommandBufferQueues, ExecutesOnOtherQueuesOfTheSameDevices) {
    OwnedCommandBuffer buffer = make_on(handles);
    record_relay(buffer);
    std::vector<OwnedQueue> others;
    others.push_back(make_queue(devices.front()));
    for (const cl_device_id device : devices)
        others.push_back(make_queue(device));
    std::vector<cl_command_queue> on(others.begin(), others.end());
    const cl_uint queue_count = static_cast<cl_uint>(on.size());
    ASSERT_EQ(functions().Enqueue(queue_count, on.data(), buffer, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(on[0]), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, after_relays(1)));
    EXPECT_EQ(functions().Enqueue(1, on.data(), buffer, 0, nullptr, nullptr), CL_INVALID_VALUE);
    on.back() = nullptr;
    EXPECT_EQ(functions().Enqueue(queue_count, on.data(), buffer, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    if (devices.size() > 1) {
        on = {others.begin(), others.end()};
        std::swap(on.front(), on.back());
        EXPECT_EQ(functions().Enqueue(queue_count, on.data(), buffer, 0, nullptr, nullptr), CL_INVALID_DEVICE);
    }
}

TEST_F(CommandBufferQueues, EventIsOfNoQueue_AndItsTimesSpanTheWhole) {
    OwnedCommandBuffer buffer = make_on(handles);
    record_relay(buffer);
    OwnedEvent event;
    ASSERT_EQ(enqueue(buffer, event.out()), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
    cl_command_queue of = handles[0];
    ASSERT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof of, &of, nullptr), CL_SUCCESS);
    EXPECT_EQ(of, nullptr);
    cl_command_type type = 0;
    ASSERT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, cl_command_type{CL_COMMAND_COMMAND_BUFFER_KHR});
    std::array<cl_ulong, 5> times{};
    for (cl_uint i = 0; i < times.size(); ++i)
        ASSERT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i, sizeof times[i], &times[i], nullptr),
                  CL_SUCCESS);
    EXPECT_TRUE(std::ranges::is_sorted(times));
    EXPECT_EQ(times[1], times[2]);  // where only the end is known, it starts when it is submitted
}

TEST_F(CommandBufferQueues, QueriesAnswerWithAllQueues) {
    OwnedCommandBuffer buffer = make_on(handles);
    cl_uint number = 0;
    ASSERT_EQ(functions().Info(buffer, CL_COMMAND_BUFFER_NUM_QUEUES_KHR, sizeof number, &number, nullptr), CL_SUCCESS);
    ASSERT_EQ(number, handles.size());
    std::vector<cl_command_queue> listed(handles.size());
    ASSERT_EQ(functions().Info(buffer, CL_COMMAND_BUFFER_QUEUES_KHR, listed.size() * sizeof listed[0], listed.data(),
                               nullptr),
              CL_SUCCESS);
    EXPECT_EQ(listed, handles);
    cl_bitfield capabilities = 0;
    ASSERT_EQ(clGetPlatformInfo(platform(), 0x0908, sizeof capabilities, &capabilities, nullptr), CL_SUCCESS);
    EXPECT_EQ(capabilities, cl_bitfield{7});
    for (const cl_device_id device : devices) {
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof capabilities, &capabilities,
                                  nullptr),
                  CL_SUCCESS);
        EXPECT_TRUE(capabilities & (1 << 4));
        std::vector<cl_device_id> partners(16);
        size_t size = 0;
        ASSERT_EQ(clGetDeviceInfo(device, 0x12AC, partners.size() * sizeof partners[0], partners.data(), &size),
                  CL_SUCCESS);
        partners.resize(size / sizeof partners[0]);
        cl_uint partner_count = 0;
        ASSERT_EQ(clGetDeviceInfo(device, 0x12AB, sizeof partner_count, &partner_count, nullptr), CL_SUCCESS);
        EXPECT_EQ(partner_count, partners.size());
        EXPECT_EQ(std::ranges::count(partners, device), 1);
    }
}

TEST_F(CommandBufferQueues, RemappedToOtherDevices_ExecutesTheSame) {
    OwnedCommandBuffer buffer = make_on(handles);
    record_relay(buffer);
    std::vector<cl_command_queue> reversed(handles.rbegin(), handles.rend());
    struct Case {
        cl_bool automatic;
        std::vector<cl_command_queue> on;
    };
    for (const Case& each : {Case{CL_FALSE, reversed}, Case{CL_TRUE, reversed}, Case{CL_TRUE, {handles[0]}},
                             Case{CL_TRUE, {handles.back()}}}) {
        cl_int error = CL_INVALID_VALUE;
        OwnedCommandBuffer copy = functions().Remap(buffer, each.automatic, static_cast<cl_uint>(each.on.size()),
                                                    each.on.data(), 0, nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(state(copy), cl_uint{CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR});
        write(a, std::vector<cl_uint>(count, 1));
        ASSERT_EQ(enqueue(copy), CL_SUCCESS);
        ASSERT_EQ(clFinish(each.on.front()), CL_SUCCESS);
        EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, after_relays(1)));
    }
}

// Copies of handles change the copy alone, and a copy of what is not finalized goes on recording.
TEST_F(CommandBufferQueues, RemappedCommands_AreUpdatedByThemselves) {
    for (const cl_command_queue to : handles) {
        OwnedCommandBuffer buffer = make_on({handles[0]}, CL_COMMAND_BUFFER_MUTABLE_KHR);
        OwnedKernel add = with("add", a, 10);
        cl_mutable_command_khr command = nullptr, copied = nullptr;
        record_on(buffer, nullptr, add, {}, &command);
        cl_int error = CL_INVALID_VALUE;
        OwnedCommandBuffer copy = functions().Remap(buffer, CL_FALSE, 1, &to, 1, &command, &copied, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(state(copy), cl_uint{CL_COMMAND_BUFFER_STATE_RECORDING_KHR});
        cl_command_queue of = nullptr;
        ASSERT_EQ(functions().CommandInfo(copied, CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR, sizeof of, &of, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(of, to);
        EXPECT_EQ(record(copy, add), CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(copy), CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
        const cl_uint thousand = 1000;
        EXPECT_EQ(update_argument(copy, copied, {1, sizeof thousand, &thousand}), CL_SUCCESS);
        write(a, std::vector<cl_uint>(count, 1));
        ASSERT_EQ(enqueue(copy), CL_SUCCESS);
        ASSERT_EQ(finish_all(), CL_SUCCESS);
        EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 1011));
        ASSERT_EQ(enqueue(buffer), CL_SUCCESS);
        ASSERT_EQ(finish_all(), CL_SUCCESS);
        EXPECT_EQ(read<cl_uint>(a, count), std::vector<cl_uint>(count, 1021));
    }
}

TEST_F(CommandBufferQueues, ReportEveryBadArgument) {
    const auto& f = functions();
    const size_t one = 1;
    OwnedCommandBuffer buffer = make_on(handles);
    OwnedKernel add = with("add", a, 1);
    OwnedQueue unlisted = make_queue(devices.front());
    cl_int error = CL_SUCCESS;
    OwnedContext elsewhere = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    OwnedQueue foreign = clCreateCommandQueueWithProperties(elsewhere, devices.front(), nullptr, &error);
    const auto kernel = [&](cl_command_queue on) {
        return f.Kernel(buffer, on, nullptr, add, 1, nullptr, &one, nullptr, 0, nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(kernel(nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(kernel(unlisted), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(kernel(foreign), CL_INVALID_CONTEXT);
    EXPECT_EQ(kernel(handles[0]), CL_SUCCESS);

    std::vector<cl_command_queue> mixed = handles;
    mixed.push_back(foreign);
    EXPECT_EQ(f.CreateCommandBuffer(static_cast<cl_uint>(mixed.size()), mixed.data(), nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    const cl_properties sync[] = {CL_COMMAND_BUFFER_FLAGS_KHR, device_side_sync, 0};
    OwnedCommandBuffer native = f.CreateCommandBuffer(2, handles.data(), sync, &error);
    EXPECT_EQ(error, CL_SUCCESS);

    const auto remap = [&](cl_command_buffer_khr from, cl_bool automatic, cl_uint queue_count,
                           const cl_command_queue* on, cl_uint handle_count, const cl_mutable_command_khr* given,
                           cl_mutable_command_khr* returned) {
        EXPECT_EQ(f.Remap(from, automatic, queue_count, on, handle_count, given, returned, &error), nullptr);
        return error;
    };
    cl_mutable_command_khr handle = nullptr, returned = nullptr;
    OwnedCommandBuffer other = make_on({handles[0]}, CL_COMMAND_BUFFER_MUTABLE_KHR);
    record_on(other, nullptr, add, {}, &handle);
    const cl_command_queue none = nullptr, outside = foreign;
    EXPECT_EQ(remap(nullptr, CL_TRUE, 1, handles.data(), 0, nullptr, nullptr), CL_INVALID_COMMAND_BUFFER_KHR);
    EXPECT_EQ(remap(buffer, CL_TRUE, 0, handles.data(), 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(remap(buffer, CL_TRUE, 1, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(remap(buffer, CL_FALSE, 1, handles.data(), 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(remap(buffer, CL_TRUE, 1, handles.data(), 1, nullptr, &returned), CL_INVALID_VALUE);
    EXPECT_EQ(remap(buffer, CL_TRUE, 1, handles.data(), 0, &handle, &returned), CL_INVALID_VALUE);
    EXPECT_EQ(remap(buffer, CL_TRUE, 1, handles.data(), 1, &handle, &returned), CL_INVALID_VALUE);  // of another buffer
    EXPECT_EQ(remap(other, CL_TRUE, 1, &none, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(remap(other, CL_TRUE, 1, &outside, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(returned, nullptr);
}

}  // namespace
}  // namespace polder::test
