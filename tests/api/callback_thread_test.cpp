// The one thread that calls completion callbacks: how many threads there are, in which order callbacks are called, and what is
// reported when no thread can be started.
#include "../support/refused_threads.h"
#include "../support/signals.h"
#include "support/command_buffer.h"
#include "support/fixture.h"
#include "support/native_kernels.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <thread>

namespace polder::test {
namespace {

int thread_count() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("Threads:"))
            return std::stoi(line.substr(8));
    return 0;
}

bool becomes(const std::atomic<int>& counter, int value) {
    for (int i = 0; i < 3000 && counter != value; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return counter == value;
}

void CL_CALLBACK count_event(cl_event, cl_int, void* counter) { ++*static_cast<std::atomic<int>*>(counter); }
void CL_CALLBACK count_buffer(cl_mem, void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

class CallbackThread : public ContextTest {
protected:
    // A command in execution until `open` is called; on a device without native kernels, one that waits until then.
    struct Gate {
        std::promise<void> opened;
        OwnedEvent waits_for;
        std::atomic<bool> is_open{false};
        OwnedQueue on;
        OwnedEvent event;

        void open() {
            if (is_open.exchange(true))
                return;
            opened.set_value();
            if (waits_for) {
                EXPECT_EQ(clSetUserEventStatus(waits_for, CL_COMPLETE), CL_SUCCESS);
            }
        }
        ~Gate() {
            open();
            clFinish(on);
        }
        static void CL_CALLBACK wait(void* data) { (*static_cast<Gate**>(data))->opened.get_future().wait(); }
    };
    void close(Gate& gate) {
        gate.on = make_queue(devices[0]);
        if (!executes_native_kernels(devices[0])) {
            gate.waits_for = make_user_event();
            ASSERT_EQ(clEnqueueMarkerWithWaitList(gate.on, 1, gate.waits_for.in(), gate.event.out()), CL_SUCCESS);
            ASSERT_EQ(clFlush(gate.on), CL_SUCCESS);
            return;
        }
        Gate* pointer = &gate;
        ASSERT_EQ(clEnqueueNativeKernel(gate.on, Gate::wait, &pointer, sizeof pointer, 0, nullptr, nullptr, 0, nullptr,
                                        gate.event.out()),
                  CL_SUCCESS);
        ASSERT_EQ(clFlush(gate.on), CL_SUCCESS);
    }
    OwnedEvent fill(cl_command_queue on, cl_mem buffer, const OwnedEvent* after) {
        const cl_int one = 1;
        OwnedEvent filled;
        EXPECT_EQ(
            clEnqueueFillBuffer(on, buffer, &one, 4, 0, 64, after ? 1 : 0, after ? after->in() : nullptr, filled.out()),
            CL_SUCCESS);
        return filled;
    }
};

// First, because the thread is started once in a process.
TEST_F(CallbackThread, RegistrationFailsWhenThereCanBeNoThread) {
    std::atomic<int> calls{0};
    const OwnedEvent event = make_user_event();
    OwnedMem buffer = make_buffer(64);
    refuse_threads = true;
    EXPECT_EQ(clSetEventCallback(event, CL_COMPLETE, count_event, &calls), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(clSetMemObjectDestructorCallback(buffer, count_buffer, &calls), CL_OUT_OF_RESOURCES);
    refuse_threads = false;
    ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, count_event, &calls), CL_SUCCESS);
    ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, count_buffer, &calls), CL_SUCCESS);
    refuse_threads = true;
    EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
    buffer.reset();
    EXPECT_TRUE(becomes(calls, 2));
    refuse_threads = false;
}

// The application's handlers of signals run on its own threads, even if it blocks the signals there and waits for them. A callback may also be
// called by the application's thread that completes the command: where the gate is a user event.
TEST_F(CallbackThread, NoHandlerOfTheApplicationRunsOnThreadsOfTheLibrary) {
    struct Answer {
        const std::thread::id application = std::this_thread::get_id();
        std::promise<bool> is_right;
        void give() { is_right.set_value(std::this_thread::get_id() == application || blocks_signals()); }
    };
    Answer of_event, of_build;
    Gate gate;
    close(gate);
    ASSERT_EQ(clSetEventCallback(
                  gate.event, CL_COMPLETE, [](cl_event, cl_int, void* answer) { static_cast<Answer*>(answer)->give(); },
                  &of_event),
              CL_SUCCESS);
    gate.open();
    EXPECT_TRUE(of_event.is_right.get_future().get());
    const OwnedProgram program = from_source("kernel void set(global int* to) { to[get_global_id(0)] = 1; }");
    ASSERT_EQ(
        clBuildProgram(
            program, 0, nullptr, "", [](cl_program, void* answer) { static_cast<Answer*>(answer)->give(); }, &of_build),
        CL_SUCCESS);
    EXPECT_TRUE(of_build.is_right.get_future().get());
    EXPECT_FALSE(blocks_signals());
}

void CL_CALLBACK count_build(cl_program, void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

// The calling thread builds when no thread can be started.
TEST_F(CallbackThread, BuildsWithACallbackNeedNoThreadOfTheirOwn) {
    const char* const source = "kernel void set(global int* to) { to[get_global_id(0)] = 1; }";
    std::atomic<int> calls{0};
    const auto status_of = [&](cl_program program) {
        cl_build_status status = CL_BUILD_NONE;
        EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        return status;
    };
    refuse_threads = true;
    const OwnedProgram built = from_source(source);
    EXPECT_EQ(clBuildProgram(built, 0, nullptr, "", count_build, &calls), CL_SUCCESS);
    EXPECT_TRUE(becomes(calls, 1));
    EXPECT_EQ(status_of(built), CL_BUILD_SUCCESS);
    const OwnedProgram compiled = from_source(source);
    EXPECT_EQ(clCompileProgram(compiled, 0, nullptr, "", 0, nullptr, nullptr, count_build, &calls), CL_SUCCESS);
    EXPECT_TRUE(becomes(calls, 2));
    EXPECT_EQ(status_of(compiled), CL_BUILD_SUCCESS);
    cl_int error = CL_INVALID_VALUE;
    const cl_program part = compiled;
    const OwnedProgram linked = clLinkProgram(context, 0, nullptr, "", 1, &part, count_build, &calls, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    EXPECT_TRUE(becomes(calls, 3));
    EXPECT_EQ(status_of(linked), CL_BUILD_SUCCESS);
    const OwnedProgram wrong = from_source("kernel void wrong(");
    EXPECT_EQ(clBuildProgram(wrong, 0, nullptr, "", count_build, &calls), CL_SUCCESS);
    EXPECT_TRUE(becomes(calls, 4));
    EXPECT_EQ(status_of(wrong), CL_BUILD_ERROR);
    refuse_threads = false;
}

TEST_F(CallbackThread, IsTheOnlyOneForManyQueuesAndReleases) {
    // Many more than the workers that devices may start meanwhile, one for each processor.
    const int queue_count = std::max(100, 10 * static_cast<int>(std::thread::hardware_concurrency()));
    std::atomic<int> events{0}, buffers{0};
    std::vector<OwnedQueue> queues;
    std::vector<OwnedMem> filled;
    std::vector<OwnedEvent> fills;
    Gate gate;
    close(gate);
    for (int i = 0; i < queue_count; ++i) {
        queues.push_back(make_queue(devices[static_cast<size_t>(i) % devices.size()]));
        filled.push_back(make_buffer(64));
        fills.push_back(fill(queues.back(), filled.back(), &gate.event));
    }
    const int before = thread_count();
    for (const OwnedEvent& event : fills)
        ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, count_event, &events), CL_SUCCESS);
    for (OwnedMem& buffer : filled) {
        ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, count_buffer, &buffers), CL_SUCCESS);
        buffer.reset();
    }
    EXPECT_LT(thread_count(), before + queue_count / 5);
    EXPECT_EQ(events, 0);
    EXPECT_EQ(buffers, 0);
    gate.open();
    EXPECT_TRUE(becomes(events, queue_count));
    EXPECT_TRUE(becomes(buffers, queue_count));
}

TEST_F(CallbackThread, CallsInOrderOfCompletion) {
    for (const cl_device_id device : devices) {
        std::atomic<int> late{0}, early{0}, destroyed{0};
        OwnedQueue first = make_queue(device), second = make_queue(device);
        OwnedMem held = make_buffer(64), buffer = make_buffer(64);
        Gate gate;
        close(gate);
        const OwnedEvent waits = fill(first, held, &gate.event);
        ASSERT_EQ(clSetMemObjectDestructorCallback(held, count_buffer, &late), CL_SUCCESS);
        ASSERT_EQ(clSetEventCallback(waits, CL_COMPLETE, count_event, &late), CL_SUCCESS);
        held.reset();
        const OwnedEvent runs = fill(second, buffer, nullptr);
        ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, count_buffer, &destroyed), CL_SUCCESS);
        ASSERT_EQ(clSetEventCallback(runs, CL_COMPLETE, count_event, &early), CL_SUCCESS);
        buffer.reset();
        EXPECT_TRUE(becomes(early, 1));
        EXPECT_TRUE(becomes(destroyed, 1));
        EXPECT_EQ(late, 0);
        gate.open();
        EXPECT_TRUE(becomes(late, 2));
    }
}

// Callbacks of one queue are called as its commands complete, whatever the order of registration.
TEST_F(CallbackThread, CallsThoseOfOneQueueInItsOrder) {
    struct Record {
        std::vector<int>* order;
        std::atomic<int>* calls;
        int number;
        static void CL_CALLBACK note(cl_event, cl_int, void* data) {
            const auto* record = static_cast<Record*>(data);
            record->order->push_back(record->number);
            ++*record->calls;
        }
    };
    constexpr int event_count = 20;
    std::vector<int> order, expected;
    std::atomic<int> calls{0};
    OwnedMem buffer = make_buffer(64);
    Gate gate;
    close(gate);
    OwnedQueue on = make_queue(devices.back());
    std::vector<OwnedEvent> events;
    std::vector<Record> records;
    for (int i = 0; i < event_count; ++i) {
        events.push_back(fill(on, buffer, &gate.event));
        records.push_back({&order, &calls, i});
        expected.push_back(i);
    }
    for (size_t i = event_count; i-- > 0;)
        ASSERT_EQ(clSetEventCallback(events[i], CL_COMPLETE, Record::note, &records[i]), CL_SUCCESS);
    gate.open();
    ASSERT_TRUE(becomes(calls, event_count));
    EXPECT_EQ(order, expected);
}

TEST_F(CallbackThread, CallsForASubBufferWhenItsCommandsAreComplete) {
    for (const cl_device_id device : devices) {
        std::atomic<int> of_sub{0}, of_parent{0};
        OwnedQueue on = make_queue(device);
        OwnedMem parent = make_buffer(1 << 16);
        const cl_buffer_region region{1 << 12, 64};
        cl_int error = CL_INVALID_VALUE;
        OwnedMem sub = clCreateSubBuffer(parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        ASSERT_EQ(clSetMemObjectDestructorCallback(sub, count_buffer, &of_sub), CL_SUCCESS);
        ASSERT_EQ(clSetMemObjectDestructorCallback(parent, count_buffer, &of_parent), CL_SUCCESS);
        Gate gate;
        close(gate);
        const OwnedEvent filled = fill(on, sub, &gate.event);
        sub.reset();
        parent.reset();
        EXPECT_EQ(clFlush(on), CL_SUCCESS);
        EXPECT_EQ(of_sub, 0);
        EXPECT_EQ(of_parent, 0);
        gate.open();
        EXPECT_TRUE(becomes(of_parent, 1));
        EXPECT_EQ(of_sub, 1);
    }
}

// A command buffer keeps its buffers as long as an enqueue of it is in flight, so the queue may hold the last reference. Their
// callbacks may use that queue.
TEST_F(CallbackThread, BuffersThatAQueueReleasesLastCallWithoutItsLocks) {
    struct Called {
        cl_command_queue queue;
        std::atomic<int> returned{0};
        static void CL_CALLBACK use_queue(cl_mem, void* data) {
            auto* const self = static_cast<Called*>(data);
            // On another thread, so that a locked queue fails the test instead of hanging it.
            auto flushed = std::async(std::launch::async, [self] { return clFlush(self->queue); });
            if (flushed.wait_for(std::chrono::seconds(60)) == std::future_status::ready)
                ++self->returned;
        }
    };
    for (const cl_command_queue_properties properties : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
        Gate gate;
        close(gate);
        const OwnedQueue on = make_queue(devices[0], properties);
        Called called{on};
        OwnedMem seen = make_buffer(64);
        const OwnedMem other = make_buffer(64);
        const auto make = [&](cl_mem buffer) {
            OwnedCommandBuffer commands = make_command_buffer(on);
            const cl_int one = 1;
            EXPECT_EQ(functions().Fill(commands, nullptr, nullptr, buffer, &one, sizeof one, 0, 64, 0, nullptr, nullptr,
                                       nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(functions().Finalize(commands), CL_SUCCESS);
            return commands;
        };
        OwnedCommandBuffer first = make(seen);
        const OwnedCommandBuffer second = make(other), third = make(other);
        ASSERT_EQ(clSetMemObjectDestructorCallback(seen, Called::use_queue, &called), CL_SUCCESS);
        OwnedEvent done;
        ASSERT_EQ(functions().Enqueue(0, nullptr, first, 1, gate.event.in(), done.out()), CL_SUCCESS);
        first.reset();
        seen.reset();
        gate.open();
        ASSERT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS);
        for (int i = 0; i < 40; ++i) {
            OwnedEvent event;
            ASSERT_EQ(enqueue_command_buffer(i % 2 ? second : third, event.out()), CL_SUCCESS);
            ASSERT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
        }
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        EXPECT_TRUE(becomes(called.returned, 1));
    }
}

// Not at the next use of the queue, which may never happen.
TEST_F(CallbackThread, BuffersOfACompleteCommandBufferEndWithIt) {
    std::atomic<int> calls{0};
    const OwnedQueue on = make_queue(devices[0]);
    OwnedMem buffer = make_buffer(64);
    OwnedCommandBuffer commands = make_command_buffer(on);
    const cl_int one = 1;
    ASSERT_EQ(
        functions().Fill(commands, nullptr, nullptr, buffer, &one, sizeof one, 0, 64, 0, nullptr, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(functions().Finalize(commands), CL_SUCCESS);
    ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, count_buffer, &calls), CL_SUCCESS);
    OwnedEvent done;
    ASSERT_EQ(enqueue_command_buffer(commands, done.out()), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS);
    commands.reset();
    buffer.reset();
    EXPECT_TRUE(becomes(calls, 1));
}

}  // namespace
}  // namespace polder::test
