// Eight threads share one out-of-order queue. Native kernels without buffers are ordered by nothing but events, markers and
// barriers, so these tests see each order that the queue fails to keep. Bounded numbers of rounds; nothing is timed.
#include "../api/support/fixture.h"

#include <atomic>
#include <barrier>
#include <thread>

namespace polder::test {
namespace {

constexpr size_t thread_count = 8;
constexpr int rounds = 60;

class SharedQueue : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        shared_ = make_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    }

    // Calls `function` on eight threads at once and waits for all.
    template <class Function>
    static void on_threads(Function&& function) {
        std::vector<std::thread> all;
        for (size_t i = 0; i < thread_count; ++i)
            all.emplace_back([&function, i] { function(i); });
        for (std::thread& thread : all)
            thread.join();
    }

    void enqueue(void (*function)(void*), void* argument, cl_event after = nullptr) {
        EXPECT_EQ(clEnqueueNativeKernel(shared_, function, &argument, sizeof argument, 0, nullptr, nullptr,
                                        after ? 1 : 0, after ? &after : nullptr, nullptr),
                  CL_SUCCESS);
    }
    // Yields first, so that commands which must execute later have the opportunity to execute earlier.
    static void increment(void* argument) {
        std::this_thread::yield();
        (*static_cast<std::atomic<int>**>(argument))->fetch_add(1);
    }

    OwnedQueue shared_;
};

TEST_F(SharedQueue, FinishWaitsForTheCommandsOfAllThreads) {
    for (int round = 0; round < rounds; ++round) {
        std::atomic<int> executed{0};
        on_threads([&](size_t) {
            for (int i = 0; i < 4; ++i)
                enqueue(increment, &executed);
        });
        ASSERT_EQ(clFinish(shared_), CL_SUCCESS);
        ASSERT_EQ(executed.load(), static_cast<int>(4 * thread_count));
    }
}

TEST_F(SharedQueue, AMarkerWaitsForTheCommandsOfAllThreads) {
    for (int round = 0; round < rounds; ++round) {
        std::atomic<int> executed{0};
        on_threads([&](size_t) { enqueue(increment, &executed); });
        OwnedEvent marker;
        ASSERT_EQ(clEnqueueMarkerWithWaitList(shared_, 0, nullptr, marker.out()), CL_SUCCESS);
        ASSERT_EQ(clWaitForEvents(1, marker.in()), CL_SUCCESS);
        ASSERT_EQ(executed.load(), static_cast<int>(thread_count));
    }
}

struct Ordered {
    std::atomic<int> before{0};
    std::atomic<int> least_seen{1 << 30};
    static void look(void* argument) {
        Ordered& ordered = **static_cast<Ordered**>(argument);
        const int seen = ordered.before.load();
        int least = ordered.least_seen.load();
        while (seen < least && !ordered.least_seen.compare_exchange_weak(least, seen)) {
        }
    }
};

TEST_F(SharedQueue, ABarrierOfOneThreadHoldsBackAllThreads) {
    for (int round = 0; round < rounds; ++round) {
        Ordered ordered;
        std::barrier all_enqueued(thread_count);
        std::barrier barrier_enqueued(thread_count);
        on_threads([&](size_t i) {
            enqueue(increment, &ordered.before);
            all_enqueued.arrive_and_wait();
            if (i == static_cast<size_t>(round) % thread_count) {
                EXPECT_EQ(clEnqueueBarrierWithWaitList(shared_, 0, nullptr, nullptr), CL_SUCCESS);
            }
            barrier_enqueued.arrive_and_wait();
            enqueue(Ordered::look, &ordered);
        });
        ASSERT_EQ(clFinish(shared_), CL_SUCCESS);
        ASSERT_EQ(ordered.least_seen.load(), static_cast<int>(thread_count));
    }
}

TEST_F(SharedQueue, BarriersOfAllThreadsAtOnceOrderEachThreadsCommands) {
    for (int round = 0; round < rounds; ++round) {
        std::vector<Ordered> ordered(thread_count);
        std::barrier all_started(thread_count);
        on_threads([&](size_t i) {
            all_started.arrive_and_wait();
            enqueue(increment, &ordered[i].before);
            EXPECT_EQ(clEnqueueBarrierWithWaitList(shared_, 0, nullptr, nullptr), CL_SUCCESS);
            enqueue(Ordered::look, &ordered[i]);
        });
        ASSERT_EQ(clFinish(shared_), CL_SUCCESS);
        for (const Ordered& of_thread : ordered)
            ASSERT_EQ(of_thread.least_seen.load(), 1);
    }
}

TEST_F(SharedQueue, ABarrierBehindAUserEventHoldsBackAllThreads) {
    for (int round = 0; round < rounds; ++round) {
        Ordered ordered;
        const OwnedEvent gate = make_user_event();
        on_threads([&](size_t) { enqueue(increment, &ordered.before, gate); });
        ASSERT_EQ(clEnqueueBarrierWithWaitList(shared_, 0, nullptr, nullptr), CL_SUCCESS);
        on_threads([&](size_t i) {
            // One thread opens the gate while the others enqueue.
            if (i == 0) {
                EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
            }
            enqueue(Ordered::look, &ordered);
        });
        ASSERT_EQ(clFinish(shared_), CL_SUCCESS);
        ASSERT_EQ(ordered.least_seen.load(), static_cast<int>(thread_count));
    }
}

TEST_F(SharedQueue, AQueueThatIsReleasedWhileThreadsWaitLosesNoCommand) {
    std::atomic<int> executed{0};
    for (int round = 0; round < 20; ++round) {
        OwnedQueue released = make_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        OwnedEvent last[thread_count];
        on_threads([&](size_t i) {
            void* argument = &executed;
            EXPECT_EQ(clEnqueueNativeKernel(released, increment, &argument, sizeof argument, 0, nullptr, nullptr, 0,
                                            nullptr, last[i].out()),
                      CL_SUCCESS);
        });
        released = {};
        // The events keep the queue.
        on_threads([&](size_t i) {
            EXPECT_EQ(clWaitForEvents(1, last[i].in()), CL_SUCCESS);
            last[i] = {};
        });
        ASSERT_EQ(executed.load(), static_cast<int>((round + 1) * thread_count));
    }
}

}  // namespace
}  // namespace polder::test
