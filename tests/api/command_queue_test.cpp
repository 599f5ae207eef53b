#include "support/fixture.h"
#include "support/native_kernels.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <malloc.h>
#include <thread>

namespace polder::test {
namespace {

using Queues = ContextTest;

TEST_F(Queues, CreationReportsEveryBadArgument) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateCommandQueueWithProperties(foreign_handle<cl_context>(context), devices[0], nullptr, &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(clCreateCommandQueueWithProperties(context, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
    const cl_queue_properties unknown[] = {0x7777, 1, 0};
    EXPECT_EQ(clCreateCommandQueueWithProperties(context, devices[0], unknown, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const cl_queue_properties unknown_bits[] = {CL_QUEUE_PROPERTIES, 1u << 20, 0};
    EXPECT_EQ(clCreateCommandQueueWithProperties(context, devices[0], unknown_bits, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST_F(Queues, DeviceMustBeOfTheContext) {
    if (devices.size() < 2)
        GTEST_SKIP() << "needs two devices";
    cl_int error = CL_SUCCESS;
    OwnedContext one = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    EXPECT_EQ(clCreateCommandQueueWithProperties(one, devices[1], nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
}

TEST_F(Queues, QueriesAnswerWhatWasGiven) {
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    cl_int error = CL_SUCCESS;
    OwnedQueue made = clCreateCommandQueueWithProperties(context, devices[0], list, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    cl_context its_context = nullptr;
    EXPECT_EQ(clGetCommandQueueInfo(made, CL_QUEUE_CONTEXT, sizeof its_context, &its_context, nullptr), CL_SUCCESS);
    EXPECT_EQ(its_context, context);
    cl_device_id its_device = nullptr;
    EXPECT_EQ(clGetCommandQueueInfo(made, CL_QUEUE_DEVICE, sizeof its_device, &its_device, nullptr), CL_SUCCESS);
    EXPECT_EQ(its_device, devices[0]);
    cl_command_queue_properties bits = 0;
    EXPECT_EQ(clGetCommandQueueInfo(made, CL_QUEUE_PROPERTIES, sizeof bits, &bits, nullptr), CL_SUCCESS);
    EXPECT_EQ(bits, cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE});
    cl_queue_properties array[3] = {};
    size_t size = 0;
    EXPECT_EQ(clGetCommandQueueInfo(made, CL_QUEUE_PROPERTIES_ARRAY, sizeof array, array, &size), CL_SUCCESS);
    EXPECT_EQ(size, sizeof array);
    EXPECT_EQ(array[1], cl_queue_properties{CL_QUEUE_PROFILING_ENABLE});
    cl_uint queue_size = 0;
    EXPECT_EQ(clGetCommandQueueInfo(made, CL_QUEUE_SIZE, sizeof queue_size, &queue_size, nullptr),
              CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clGetCommandQueueInfo(made, 0x1, sizeof queue_size, &queue_size, nullptr), CL_INVALID_VALUE);
}

TEST_F(Queues, BadHandlesAreErrorsNotCrashes) {
    const auto foreign = foreign_handle<cl_command_queue>(context);
    EXPECT_EQ(clFinish(foreign), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clFlush(foreign), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clRetainCommandQueue(foreign), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clReleaseCommandQueue(foreign), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clFinish(reinterpret_cast<cl_command_queue>(static_cast<cl_context>(context))), CL_INVALID_COMMAND_QUEUE);
    cl_int error = CL_SUCCESS;
    cl_command_queue released_handle = clCreateCommandQueueWithProperties(context, devices[0], nullptr, &error);
    ASSERT_EQ(clReleaseCommandQueue(released_handle), CL_SUCCESS);
    EXPECT_EQ(clFinish(released_handle), CL_INVALID_COMMAND_QUEUE);
}

TEST_F(Queues, ReleaseWithWorkInFlightFinishesTheWork) {
    for (cl_device_id device : devices) {
        OwnedMem buffer = make_buffer(1 << 20);
        const uint32_t pattern = 0x01020304;
        OwnedEvent done;
        {
            OwnedQueue temporary = make_queue(device);
            for (int i = 0; i < 10; ++i)
                ASSERT_EQ(clEnqueueFillBuffer(temporary, buffer, &pattern, sizeof pattern, 0, 1 << 20, 0, nullptr,
                                              i == 9 ? done.out() : nullptr),
                          CL_SUCCESS);
        }
        ASSERT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS);
        EXPECT_EQ(read<uint32_t>(buffer, 1).front(), pattern);
    }
}

// Kahn's order: each command adds to what the one before has written.
// Commands of the new queue are complete while the released one's function of the application still waits for them.
TEST_F(Queues, ANewQueueDoesNotWaitForTheCommandsOfAReleasedOne) {
    if (!executes_native_kernels(devices[0]))
        GTEST_SKIP() << "the device executes no functions of the application";
    static std::atomic<bool> is_open;
    static std::atomic<int> returned;
    returned = 0;
    int blocked = 0;
    for (const cl_command_queue_properties bits :
         {cl_command_queue_properties{0}, cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
        is_open = false;
        const auto function = [](void*) {
            while (!is_open)
                std::this_thread::yield();
            ++returned;
        };
        {
            const OwnedQueue released = make_queue(devices[0], bits);
            ASSERT_EQ(clEnqueueNativeKernel(released, function, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, nullptr),
                      CL_SUCCESS);
            ++blocked;
        }
        const OwnedMem buffer = make_buffer(4 * sizeof(uint32_t));
        for (uint32_t round = 0; round < 8; ++round) {
            const OwnedQueue on = make_queue(devices[0], bits);
            const std::vector<uint32_t> values(4, round);
            write(buffer, values, on);
            EXPECT_EQ(read<uint32_t>(buffer, 4, on), values);
        }
        is_open = true;
        while (returned != blocked)
            std::this_thread::yield();
    }
}

TEST_F(Queues, InOrderQueueExecutesInOrder) {
    for (cl_device_id device : devices) {
        OwnedQueue in_order = make_queue(device);
        OwnedMem buffer = make_buffer(4096);
        for (uint32_t i = 1; i <= 1000; ++i)
            ASSERT_EQ(clEnqueueFillBuffer(in_order, buffer, &i, sizeof i, size_t{i % 7} * 4, 400, 0, nullptr, nullptr),
                      CL_SUCCESS);
        const auto values = read<uint32_t>(buffer, 100, in_order);
        EXPECT_EQ(values[50], 1000u);
    }
}

TEST_F(Queues, BarrierOrdersAnOutOfOrderQueue) {
    for (cl_device_id device : devices) {
        OwnedQueue out_of_order = make_queue(device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        OwnedMem buffer = make_buffer(1 << 16);
        for (uint32_t i = 0; i < 200; ++i) {
            ASSERT_EQ(clEnqueueFillBuffer(out_of_order, buffer, &i, sizeof i, 0, 1 << 16, 0, nullptr, nullptr),
                      CL_SUCCESS);
            ASSERT_EQ(clEnqueueBarrierWithWaitList(out_of_order, 0, nullptr, nullptr), CL_SUCCESS);
        }
        ASSERT_EQ(clFinish(out_of_order), CL_SUCCESS);
        EXPECT_EQ(read<uint32_t>(buffer, 1 << 14), std::vector<uint32_t>(1 << 14, 199));
    }
}

TEST_F(Queues, MarkerOfAnOutOfOrderQueueWaitsForEverythingBefore) {
    OwnedQueue out_of_order = make_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    OwnedEvent gate = make_user_event();
    OwnedMem buffer = make_buffer(64);
    const uint32_t value = 7;
    ASSERT_EQ(clEnqueueFillBuffer(out_of_order, buffer, &value, 4, 0, 64, 1, gate.in(), nullptr), CL_SUCCESS);
    OwnedEvent marker;
    ASSERT_EQ(clEnqueueMarkerWithWaitList(out_of_order, 0, nullptr, marker.out()), CL_SUCCESS);
    cl_int status = CL_COMPLETE;
    ASSERT_EQ(clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), CL_SUCCESS);
    EXPECT_EQ(status, CL_QUEUED);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, marker.in()), CL_SUCCESS);
    EXPECT_EQ(read<uint32_t>(buffer, 1).front(), 7u);
}

// Each waits for the one before it, and the first for the gate. If each waited for all before it, there would be 12.5 million dependencies.
TEST_F(Queues, MarkersAndBarriersThatAreHeldBackWaitForTheOneBefore) {
    for (const bool are_barriers : {false, true}) {
        const OwnedQueue on = make_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        const OwnedEvent gate = make_user_event();
        const OwnedMem buffer = make_buffer(size_t{4} * 5000);
        const size_t allocated_before = mallinfo2().uordblks;
        OwnedEvent last;
        for (uint32_t i = 0; i < 5000; ++i) {
            // Markers order nothing: fills between them may write at once.
            const size_t offset = are_barriers ? 0 : size_t{4} * i;
            ASSERT_EQ(clEnqueueFillBuffer(on, buffer, &i, 4, offset, 4, i == 0 ? 1 : 0, i == 0 ? gate.in() : nullptr,
                                          nullptr),
                      CL_SUCCESS);
            ASSERT_EQ(are_barriers ? clEnqueueBarrierWithWaitList(on, 0, nullptr, nullptr)
                                   : clEnqueueMarkerWithWaitList(on, 0, nullptr, i == 4999 ? last.out() : nullptr),
                      CL_SUCCESS);
        }
        EXPECT_LT(mallinfo2().uordblks, allocated_before + (size_t{100} << 20));
        if (last) {
            cl_int status = CL_COMPLETE;
            ASSERT_EQ(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(status, CL_QUEUED);
        }
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        if (are_barriers) {
            EXPECT_EQ(read<uint32_t>(buffer, 1).front(), 4999u);
        }
    }
}

// A barrier that fails orders nothing by itself, but the barrier before it still does: for commands that are enqueued while both wait, and
// for those that come when the second one has failed.
TEST_F(Queues, ABarrierBeforeAFailedOneStillOrders) {
    struct Running {
        std::promise<void> may_end;
        std::atomic<bool> has_ended{false};
        static void CL_CALLBACK run(void* data) {
            auto* const self = *static_cast<Running**>(data);
            self->may_end.get_future().wait();
            self->has_ended = true;
        }
    };
    if (!executes_native_kernels(devices[0]))
        GTEST_SKIP() << "a command that runs until it is told to end is a native kernel";
    for (const bool is_enqueued_before : {true, false})
        for (const int failing : {1, 2}) {
            const OwnedQueue on = make_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
            const OwnedMem buffer = make_buffer(64);
            Running running;
            Running* pointer = &running;
            OwnedEvent runs, after;
            ASSERT_EQ(clEnqueueNativeKernel(queue, Running::run, &pointer, sizeof pointer, 0, nullptr, nullptr, 0,
                                            nullptr, runs.out()),
                      CL_SUCCESS);
            ASSERT_EQ(clFlush(queue), CL_SUCCESS);
            const OwnedEvent good = make_user_event(), bad = make_user_event();
            const cl_event of_good[] = {runs, good};
            ASSERT_EQ(clEnqueueBarrierWithWaitList(on, 2, of_good, nullptr), CL_SUCCESS);
            for (int i = 0; i < failing; ++i)
                ASSERT_EQ(clEnqueueBarrierWithWaitList(on, 1, bad.in(), nullptr), CL_SUCCESS);
            const auto fill = [&] {
                const cl_int one = 1;
                ASSERT_EQ(clEnqueueFillBuffer(on, buffer, &one, sizeof one, 0, 64, 0, nullptr, after.out()),
                          CL_SUCCESS);
            };
            if (is_enqueued_before)
                fill();
            ASSERT_EQ(clSetUserEventStatus(good, CL_COMPLETE), CL_SUCCESS);
            ASSERT_EQ(clSetUserEventStatus(bad, -7), CL_SUCCESS);
            if (!is_enqueued_before)
                fill();
            std::thread ender([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));  // a command that does not wait is faster
                running.may_end.set_value();
            });
            EXPECT_EQ(clWaitForEvents(1, after.in()), CL_SUCCESS);
            EXPECT_TRUE(running.has_ended) << is_enqueued_before << ' ' << failing;
            ender.join();
            EXPECT_EQ(clFinish(on), CL_SUCCESS);
            EXPECT_EQ(clFinish(queue), CL_SUCCESS);
        }
}

// A context of its own, whose destructor callback shows that the queue was destroyed.
class QueueLifetime : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        cl_int error = CL_SUCCESS;
        context_ = OwnedContext(clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error));
        ASSERT_EQ(error, CL_SUCCESS);
        const auto note = [](cl_context, void* destroyed) { *static_cast<bool*>(destroyed) = true; };
        ASSERT_EQ(clSetContextDestructorCallback(context_, note, &destroyed_), CL_SUCCESS);
        buffer_ = OwnedMem(clCreateBuffer(context_, CL_MEM_READ_WRITE, 64, nullptr, &error));
        ASSERT_EQ(error, CL_SUCCESS);
    }
    OwnedQueue make_own_queue(cl_command_queue_properties properties) {
        const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
        cl_int error = CL_SUCCESS;
        OwnedQueue made(clCreateCommandQueueWithProperties(context_, devices[0], list, &error));
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    void fill(cl_command_queue own, const OwnedEvent* gate, OwnedEvent& done) {
        const uint32_t value = 7;
        ASSERT_EQ(
            clEnqueueFillBuffer(own, buffer_, &value, 4, 0, 64, gate ? 1 : 0, gate ? gate->in() : nullptr, done.out()),
            CL_SUCCESS);
    }
    bool is_gone_after_releases() {
        buffer_.reset();
        context_.reset();
        return destroyed_;
    }
    OwnedContext context_;
    OwnedMem buffer_;
    bool destroyed_ = false;
};

TEST_F(QueueLifetime, AProfilingQueueEndsThoughOnlyItsEventsWereWaitedFor) {
    {
        OwnedQueue own = make_own_queue(CL_QUEUE_PROFILING_ENABLE);
        OwnedEvent done;
        fill(own, nullptr, done);
        ASSERT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS);
    }
    EXPECT_TRUE(is_gone_after_releases());
}

TEST_F(QueueLifetime, AQueueEndsThoughItsLastCommandsWereHeldBack) {
    for (const cl_command_queue_properties properties : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
        OwnedQueue own = make_own_queue(properties);
        cl_int error = CL_SUCCESS;
        OwnedEvent gate(clCreateUserEvent(context_, &error));
        ASSERT_EQ(error, CL_SUCCESS);
        OwnedEvent done, barrier;
        fill(own, &gate, done);
        ASSERT_EQ(clEnqueueBarrierWithWaitList(own, 0, nullptr, barrier.out()), CL_SUCCESS);
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clWaitForEvents(1, barrier.in()), CL_SUCCESS);
    }
    EXPECT_TRUE(is_gone_after_releases());
}

TEST_F(Queues, PropertiesThatNoDeviceHas_AndSuchThatDoNotGoTogether_AreDifferentErrors) {
    cl_int error = CL_SUCCESS;
    const auto error_of = [&](std::initializer_list<cl_queue_properties> list) {
        EXPECT_EQ(clCreateCommandQueueWithProperties(context, devices[0], std::data(list), &error), nullptr);
        return error;
    };
    constexpr cl_queue_properties on_device = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    constexpr cl_queue_properties huge = cl_queue_properties{1} << 40;
    EXPECT_EQ(error_of({CL_QUEUE_PROPERTIES, on_device, CL_QUEUE_SIZE, huge, 0}), CL_INVALID_QUEUE_PROPERTIES);
    EXPECT_EQ(error_of({CL_QUEUE_SIZE, huge, CL_QUEUE_PROPERTIES, on_device, 0}), CL_INVALID_QUEUE_PROPERTIES);
    // A size of a queue on the host, a queue on the device that is in order, the default of no queue on the device.
    EXPECT_EQ(error_of({CL_QUEUE_SIZE, 4096, 0}), CL_INVALID_VALUE);
    EXPECT_EQ(error_of({CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0}), CL_INVALID_VALUE);
    EXPECT_EQ(error_of({CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE_DEFAULT, 0}), CL_INVALID_VALUE);
}

// cl_khr_priority_hints and cl_khr_throttle_hints.
TEST_F(Queues, HintsAreAcceptedAndReported) {
    for (const cl_queue_properties name : {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_THROTTLE_KHR}) {
        for (const cl_queue_properties level : {1u, 2u, 4u}) {  // high, medium, low
            const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, name, level, 0};
            cl_int error = CL_INVALID_VALUE;
            const OwnedQueue made = clCreateCommandQueueWithProperties(context, devices[0], list, &error);
            ASSERT_EQ(error, CL_SUCCESS);
            cl_queue_properties reported[5] = {};
            EXPECT_EQ(clGetCommandQueueInfo(made, CL_QUEUE_PROPERTIES_ARRAY, sizeof reported, reported, nullptr),
                      CL_SUCCESS);
            EXPECT_TRUE(std::equal(std::begin(list), std::end(list), reported));
            EXPECT_EQ(clEnqueueMarkerWithWaitList(made, 0, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(clFinish(made), CL_SUCCESS);
        }
        for (const cl_queue_properties wrong : {0u, 3u, 8u}) {
            const cl_queue_properties list[] = {name, wrong, 0};
            cl_int error = CL_SUCCESS;
            EXPECT_EQ(clCreateCommandQueueWithProperties(context, devices[0], list, &error), nullptr);
            EXPECT_EQ(error, CL_INVALID_VALUE);
        }
        const cl_queue_properties on_device[] = {
            CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, name, 1, 0};
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clCreateCommandQueueWithProperties(context, devices[0], on_device, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_QUEUE_PROPERTIES);
    }
}

TEST_F(Queues, DeprecatedCreationReportsEveryBadArgument) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateCommandQueue(context, devices[0], cl_command_queue_properties{1} << 20, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateCommandQueue(context, foreign_handle<cl_device_id>(context), 0, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
    EXPECT_EQ(clCreateCommandQueue(foreign_handle<cl_context>(context), devices[0], 0, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    if (devices.size() > 1) {
        const OwnedContext small = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
        EXPECT_EQ(clCreateCommandQueue(small, devices[1], 0, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_DEVICE);
    }
    const OwnedQueue made = clCreateCommandQueue(context, devices[0], CL_QUEUE_PROFILING_ENABLE, &error);
    EXPECT_EQ(error, CL_SUCCESS);
}

// OpenCL 1.0's function: no device here permits it.
TEST_F(Queues, PropertiesOfAQueueCannotBeChanged) {
    cl_command_queue_properties before = 0;
    EXPECT_EQ(clSetCommandQueueProperty(queue, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, &before), CL_INVALID_OPERATION);
    EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof before, &before, nullptr), CL_SUCCESS);
    EXPECT_EQ(before, 0u);
    EXPECT_EQ(clSetCommandQueueProperty(foreign_handle<cl_command_queue>(context), CL_QUEUE_PROFILING_ENABLE, CL_TRUE,
                                        nullptr),
              CL_INVALID_COMMAND_QUEUE);
}

TEST_F(Queues, NoDefaultQueueOnADeviceThatIsNotTheContexts) {
    if (devices.size() < 2)
        GTEST_SKIP() << "needs two devices";
    cl_int error = CL_SUCCESS;
    const OwnedContext small = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    EXPECT_EQ(clSetDefaultDeviceCommandQueue(small, devices[1], queue), CL_INVALID_DEVICE);
}

}  // namespace
}  // namespace polder::test
