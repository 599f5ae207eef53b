#include "support/fixture.h"
#include "support/peek.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace polder::test {
namespace {

class Events : public ContextTest {
protected:
    static cl_int status_of(cl_event event) {
        cl_int status = 12345;
        EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        return status;
    }

    // A fill that waits for `gate`.
    OwnedEvent gated_fill(cl_mem buffer, uint32_t value, cl_event gate, cl_command_queue on = nullptr) {
        OwnedEvent event;
        EXPECT_EQ(clEnqueueFillBuffer(on ? on : static_cast<cl_command_queue>(queue), buffer, &value, sizeof value, 0,
                                      64, 1, &gate, event.out()),
                  CL_SUCCESS);
        return event;
    }
};

TEST_F(Events, UserEventGoesFromSubmittedToCompleteOnce) {
    OwnedEvent event = make_user_event();
    EXPECT_EQ(status_of(event), CL_SUBMITTED);
    EXPECT_EQ(clSetUserEventStatus(event, CL_RUNNING), CL_INVALID_VALUE);
    EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(status_of(event), CL_COMPLETE);
    EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_INVALID_OPERATION);
    cl_command_type type = 0;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, cl_command_type{CL_COMMAND_USER});
    cl_command_queue its_queue = queue;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof its_queue, &its_queue, nullptr), CL_SUCCESS);
    EXPECT_EQ(its_queue, nullptr);
}

TEST_F(Events, BadHandlesAndListsAreErrors) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateUserEvent(foreign_handle<cl_context>(context), &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    const auto foreign = foreign_handle<cl_event>(context);
    EXPECT_EQ(clRetainEvent(foreign), CL_INVALID_EVENT);
    EXPECT_EQ(clReleaseEvent(foreign), CL_INVALID_EVENT);
    EXPECT_EQ(clSetUserEventStatus(foreign, CL_COMPLETE), CL_INVALID_EVENT);
    EXPECT_EQ(clWaitForEvents(1, &foreign), CL_INVALID_EVENT);
    EXPECT_EQ(clWaitForEvents(0, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clWaitForEvents(1, nullptr), CL_INVALID_VALUE);
    OwnedEvent event = make_user_event();
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue, 0, event.in(), nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue, 1, &foreign, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(clSetEventCallback(event, CL_COMPLETE, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clSetEventCallback(event, CL_QUEUED, [](cl_event, cl_int, void*) {}, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetEventInfo(event, 0x1, 0, nullptr, nullptr), CL_INVALID_VALUE);
}

TEST_F(Events, OfAnotherContextAreRefused) {
    cl_int error = CL_SUCCESS;
    OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    OwnedEvent event = clCreateUserEvent(other, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue, 1, event.in(), nullptr), CL_INVALID_CONTEXT);
    OwnedEvent mine = make_user_event();
    const cl_event both[] = {mine, event};
    EXPECT_EQ(clWaitForEvents(2, both), CL_INVALID_CONTEXT);
}

TEST_F(Events, CommandWaitsForUserEvent) {
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem buffer = make_buffer(64);
        write(buffer, std::vector<uint32_t>(16, 1), on);
        OwnedEvent gate = make_user_event();
        OwnedEvent filled = gated_fill(buffer, 2, gate, on);
        EXPECT_EQ(status_of(filled), CL_QUEUED);
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clWaitForEvents(1, filled.in()), CL_SUCCESS);
        EXPECT_EQ(status_of(filled), CL_COMPLETE);
        EXPECT_EQ(read<uint32_t>(buffer, 16, on), std::vector<uint32_t>(16, 2));
    }
}

TEST_F(Events, InOrderQueueHoldsBackWhatFollowsAWaitingCommand) {
    OwnedMem buffer = make_buffer(64);
    OwnedEvent gate = make_user_event();
    OwnedEvent first = gated_fill(buffer, 1, gate);
    const uint32_t two = 2;
    OwnedEvent second;
    ASSERT_EQ(clEnqueueFillBuffer(queue, buffer, &two, sizeof two, 0, 64, 0, nullptr, second.out()), CL_SUCCESS);
    EXPECT_EQ(status_of(second), CL_QUEUED);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(read<uint32_t>(buffer, 16), std::vector<uint32_t>(16, 2));
}

TEST_F(Events, FailedUserEventFailsItsWaitersAndTheirWaiters) {
    OwnedMem buffer = make_buffer(64);
    write(buffer, std::vector<uint32_t>(16, 9));
    OwnedQueue other = make_queue(devices.back(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    OwnedEvent gate = make_user_event();
    OwnedEvent first = gated_fill(buffer, 1, gate, other);
    OwnedEvent second = gated_fill(buffer, 2, first, other);
    ASSERT_EQ(clSetUserEventStatus(gate, -42), CL_SUCCESS);
    EXPECT_EQ(status_of(gate), -42);
    EXPECT_EQ(clWaitForEvents(1, second.in()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(status_of(first), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(status_of(second), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    // Blocking commands return the failure, and the queue goes on.
    uint32_t value = 0;
    EXPECT_EQ(clEnqueueReadBuffer(other, buffer, CL_TRUE, 0, 4, &value, 1, second.in(), nullptr),
              CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(read<uint32_t>(buffer, 16, other), std::vector<uint32_t>(16, 9));
}

TEST_F(Events, AHundredThousandLinksUnwindWithoutRecursion) {
    OwnedMem buffer = make_buffer(64);
    OwnedEvent gate = make_user_event();
    OwnedQueue out_of_order = make_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event last = gate;
    ASSERT_EQ(clRetainEvent(last), CL_SUCCESS);
    for (int i = 0; i < 100000; ++i) {
        cl_event next = nullptr;
        ASSERT_EQ(clEnqueueMarkerWithWaitList(out_of_order, 1, &last, &next), CL_SUCCESS);
        ASSERT_EQ(clReleaseEvent(last), CL_SUCCESS);
        last = next;
    }
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, &last), CL_SUCCESS);
    EXPECT_EQ(clReleaseEvent(last), CL_SUCCESS);
}

struct Seen {
    std::atomic<int> calls{0};
    std::atomic<cl_int> status{12345};
    static void CL_CALLBACK note(cl_event, cl_int status, void* user) {
        auto* seen = static_cast<Seen*>(user);
        seen->status = status;
        ++seen->calls;
    }
    void wait_for(int count) const {
        while (calls < count)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
};

TEST_F(Events, CallbacksReportEveryStatusInOrder) {
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem buffer = make_buffer(64);
        OwnedEvent gate = make_user_event();
        OwnedEvent filled = gated_fill(buffer, 1, gate, on);
        Seen submitted;
        Seen running;
        Seen complete;
        ASSERT_EQ(clSetEventCallback(filled, CL_SUBMITTED, Seen::note, &submitted), CL_SUCCESS);
        ASSERT_EQ(clSetEventCallback(filled, CL_RUNNING, Seen::note, &running), CL_SUCCESS);
        ASSERT_EQ(clSetEventCallback(filled, CL_COMPLETE, Seen::note, &complete), CL_SUCCESS);
        EXPECT_EQ(submitted.calls, 0);
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clFlush(on), CL_SUCCESS);
        complete.wait_for(1);
        EXPECT_EQ(submitted.status, CL_SUBMITTED);
        EXPECT_EQ(running.status, CL_RUNNING);
        EXPECT_EQ(complete.status, CL_COMPLETE);
        EXPECT_EQ(submitted.calls + running.calls + complete.calls, 3);
    }
}

TEST_F(Events, CallbackOfACompleteOrFailedEventRuns) {
    OwnedEvent done = make_user_event();
    ASSERT_EQ(clSetUserEventStatus(done, CL_COMPLETE), CL_SUCCESS);
    Seen seen;
    ASSERT_EQ(clSetEventCallback(done, CL_COMPLETE, Seen::note, &seen), CL_SUCCESS);
    seen.wait_for(1);
    EXPECT_EQ(seen.status, CL_COMPLETE);
    OwnedEvent failed = make_user_event();
    Seen seen_failure;
    ASSERT_EQ(clSetEventCallback(failed, CL_COMPLETE, Seen::note, &seen_failure), CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(failed, -7), CL_SUCCESS);
    seen_failure.wait_for(1);
    EXPECT_EQ(seen_failure.status, -7);
}

TEST_F(Events, CallbackForTheSubmissionOfAUserEventRunsAtOnce) {
    const OwnedEvent event = make_user_event();
    Seen submitted;
    Seen complete;
    ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, Seen::note, &complete), CL_SUCCESS);
    ASSERT_EQ(clSetEventCallback(event, CL_SUBMITTED, Seen::note, &submitted), CL_SUCCESS);
    submitted.wait_for(1);
    EXPECT_EQ(submitted.status, CL_SUBMITTED);
    EXPECT_EQ(complete.calls, 0);
    ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
    complete.wait_for(1);
    EXPECT_EQ(submitted.calls, 1);
}

TEST_F(Events, CallbackGetsTheStatusItWasRegisteredFor) {
    const OwnedEvent done = make_user_event();
    ASSERT_EQ(clSetUserEventStatus(done, CL_COMPLETE), CL_SUCCESS);
    for (const cl_int status : {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE}) {
        Seen seen;
        ASSERT_EQ(clSetEventCallback(done, status, Seen::note, &seen), CL_SUCCESS);
        seen.wait_for(1);
        EXPECT_EQ(seen.status, status);
    }
}

TEST_F(Events, CallbackMaySetTheUserEventThatOthersWaitFor) {
    OwnedMem buffer = make_buffer(64);
    OwnedEvent gate = make_user_event();
    OwnedEvent first;
    const uint32_t one = 1;
    ASSERT_EQ(clEnqueueFillBuffer(queue, buffer, &one, 4, 0, 64, 0, nullptr, first.out()), CL_SUCCESS);
    const auto open_gate = [](cl_event, cl_int, void* user) {
        EXPECT_EQ(clSetUserEventStatus(static_cast<cl_event>(user), CL_COMPLETE), CL_SUCCESS);
    };
    ASSERT_EQ(clSetEventCallback(first, CL_COMPLETE, open_gate, static_cast<cl_event>(gate)), CL_SUCCESS);
    OwnedEvent second = gated_fill(buffer, 2, gate);
    ASSERT_EQ(clWaitForEvents(1, second.in()), CL_SUCCESS);
    EXPECT_EQ(read<uint32_t>(buffer, 1).front(), 2u);
}

// Each callback sets the user event of the next one: 200,000 calls within one another need more than a thread's stack.
TEST_F(Events, CallbacksThatSetTheNextUserEventNeedNoStackEach) {
    constexpr size_t length = 200000;
    struct Chain {
        std::vector<OwnedEvent> events;
        std::atomic<size_t> calls{0};
        static void CL_CALLBACK set_next(cl_event, cl_int status, void* user) {
            auto* chain = static_cast<Chain*>(user);
            EXPECT_EQ(status, CL_COMPLETE);
            // After the last call the chain may have been destroyed.
            const size_t next = ++chain->calls;
            if (next < length) {
                EXPECT_EQ(clSetUserEventStatus(chain->events[next], CL_COMPLETE), CL_SUCCESS);
            }
        }
    };
    Chain chain;
    for (size_t i = 0; i < length; ++i) {
        chain.events.push_back(make_user_event());
        ASSERT_EQ(clSetEventCallback(chain.events.back(), CL_COMPLETE, Chain::set_next, &chain), CL_SUCCESS);
    }
    ASSERT_EQ(clSetUserEventStatus(chain.events.front(), CL_COMPLETE), CL_SUCCESS);
    while (chain.calls < length)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(Events, WhatWasFlushedBeforeItsGateOpenedIsExecutedWithoutFurtherCalls) {
    cl_device_svm_capabilities svm = 0;
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr), CL_SUCCESS);
    if (!(svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM))
        GTEST_SKIP() << "the host cannot see what the device does without asking for it";
    for (const cl_command_queue_properties order : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
        const OwnedQueue on = make_queue(devices[0], order);
        const OwnedEvent gate = make_user_event();
        uint32_t word = 0;
        const uint32_t seven = 7;
        ASSERT_EQ(clEnqueueSVMMemFill(on, &word, &seven, sizeof seven, sizeof word, 1, gate.in(), nullptr), CL_SUCCESS);
        ASSERT_EQ(clFlush(on), CL_SUCCESS);
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        for (int waited_ms = 0; peek(word) != seven && waited_ms < 10'000; ++waited_ms)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(peek(word), seven);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
    }
}

TEST_F(Events, PollingWithoutFlushMakesProgress) {
    OwnedMem buffer = make_buffer(64);
    const uint32_t one = 1;
    OwnedEvent filled;
    ASSERT_EQ(clEnqueueFillBuffer(queue, buffer, &one, 4, 0, 64, 0, nullptr, filled.out()), CL_SUCCESS);
    while (status_of(filled) > CL_COMPLETE)
        std::this_thread::yield();
    EXPECT_EQ(status_of(filled), CL_COMPLETE);
}

TEST_F(Events, ProfilingTimesAreInOrder) {
    for (cl_device_id device : devices) {
        OwnedQueue profiled = make_queue(device, CL_QUEUE_PROFILING_ENABLE);
        OwnedMem buffer = make_buffer(1 << 20);
        const uint32_t one = 1;
        OwnedEvent filled;
        ASSERT_EQ(clEnqueueFillBuffer(profiled, buffer, &one, 4, 0, 1 << 20, 0, nullptr, filled.out()), CL_SUCCESS);
        ASSERT_EQ(clWaitForEvents(1, filled.in()), CL_SUCCESS);
        cl_ulong last = 1;
        for (cl_profiling_info name :
             {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
              CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_COMPLETE}) {
            cl_ulong time = 0;
            ASSERT_EQ(clGetEventProfilingInfo(filled, name, sizeof time, &time, nullptr), CL_SUCCESS);
            EXPECT_LE(last, time);
            last = time;
        }
        EXPECT_EQ(clGetEventProfilingInfo(filled, 0x1, sizeof last, &last, nullptr), CL_INVALID_VALUE);
    }
    OwnedEvent user = make_user_event();
    cl_ulong time = 0;
    EXPECT_EQ(clGetEventProfilingInfo(user, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr),
              CL_PROFILING_INFO_NOT_AVAILABLE);
    OwnedEvent unprofiled;
    ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 0, nullptr, unprofiled.out()), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(clGetEventProfilingInfo(unprofiled, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr),
              CL_PROFILING_INFO_NOT_AVAILABLE);
}

TEST_F(Events, ManyThreadsWaitForOneEvent) {
    OwnedEvent gate = make_user_event();
    OwnedMem buffer = make_buffer(64);
    OwnedEvent filled = gated_fill(buffer, 3, gate);
    std::array<std::thread, 8> waiters;
    for (std::thread& waiter : waiters)
        waiter = std::thread([&] { EXPECT_EQ(clWaitForEvents(1, filled.in()), CL_SUCCESS); });
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    for (std::thread& waiter : waiters)
        waiter.join();
    EXPECT_EQ(read<uint32_t>(buffer, 1).front(), 3u);
}

TEST_F(Events, OnlyUserEventsAreSet) {
    OwnedEvent marker;
    ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 0, nullptr, marker.out()), CL_SUCCESS);
    EXPECT_EQ(clSetUserEventStatus(marker, CL_COMPLETE), CL_INVALID_EVENT);
    const OwnedEvent failed = make_user_event();
    EXPECT_EQ(clSetUserEventStatus(failed, -1), CL_SUCCESS);
    EXPECT_EQ(clSetUserEventStatus(failed, CL_COMPLETE), CL_INVALID_OPERATION);
    EXPECT_EQ(clWaitForEvents(1, failed.in()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    for (const cl_int type : {CL_QUEUED, -1, 17})
        EXPECT_EQ(clSetEventCallback(marker, type, [](cl_event, cl_int, void*) {}, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clWaitForEvents(0, marker.in()), CL_INVALID_VALUE);
}

TEST_F(Events, ProfilingTimesAreThereOnceTheCommandIsComplete) {
    const OwnedQueue profiling = make_queue(devices[0], CL_QUEUE_PROFILING_ENABLE);
    const OwnedMem buffer = make_buffer(64);
    const OwnedEvent gate = make_user_event();
    const OwnedEvent filled = gated_fill(buffer, 1, gate, profiling);
    cl_ulong time = 0;
    EXPECT_EQ(clGetEventProfilingInfo(filled, CL_PROFILING_COMMAND_QUEUED, sizeof time, &time, nullptr),
              CL_PROFILING_INFO_NOT_AVAILABLE);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, filled.in()), CL_SUCCESS);
    EXPECT_EQ(clGetEventProfilingInfo(filled, CL_PROFILING_COMMAND_QUEUED, sizeof time, &time, nullptr), CL_SUCCESS);
}

} // namespace
} // namespace polder::test
