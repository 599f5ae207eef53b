// What holds for every driver: timelines count, failures and times are there, abilities are absent or work or fail with a reason, and
// queues of other drivers are waited for with a fence and without.
#include "conformance.h"
#include "fenced_queue.h"

#include <array>
#include <cstdlib>
#include <thread>

namespace polder::conformance {
namespace {

using Fences = FencedQueue::Fences;

void count_call(void* data) { ++*static_cast<std::atomic<int>*>(data); }

}  // namespace

TEST_P(EveryDriver, ATimelineCountsUpAndEndsWhateverHappens) {
    const auto queue = make_queue();
    for (uint64_t i = 1; i <= 100; ++i) {
        const Timepoint point = queue->marker({});
        ASSERT_EQ(point.queue, queue.get());
        ASSERT_EQ(point.value, i);
    }
    queue->wait(100);
    EXPECT_EQ(queue->completed(), 100u);
    EXPECT_GE(queue->started(), 100u);
}

TEST_P(EveryDriver, TimesAreThereWhenTheOperationIsComplete) {
    const auto queue = make_queue();
    driver::OperationTimes times;
    wait(queue->marker({{}, &times}));
    EXPECT_NE(times.start_ns.load(), 0u);
    EXPECT_GE(times.end_ns.load(), times.start_ns.load());
    EXPECT_LE(times.end_ns.load(), device().now_ns());
}

TEST_P(EveryDriver, WhatWaitsForAFailureFailsAndIsNotExecuted) {
    const auto queue = make_queue();
    test::FailedQueue failed;
    std::atomic<int> calls{0};
    const std::array waits{Timepoint{&failed, 1}};
    const Timepoint point = queue->call({count_call, &calls}, {waits});
    wait(point);
    EXPECT_EQ(queue->status(point.value), Status::exec_status_error_for_events_in_wait_list);
    const std::array own{point};
    const Timepoint after = queue->marker({own});
    wait(after);
    EXPECT_EQ(queue->status(after.value), Status::exec_status_error_for_events_in_wait_list);
    EXPECT_EQ(calls.load(), 0);
}

TEST_P(EveryDriver, AbilitiesWorkOrFailWithAReason) {
    EXPECT_FALSE(device().info().name.empty());
    if (!device().info().space.is_host()) {
        const auto too_much = device().reserve_memory(ByteCount{uint64_t{1} << 60});
        ASSERT_FALSE(too_much.has_value());
        EXPECT_EQ(too_much.error().status(), Status::mem_object_allocation_failure);
    }
    if (driver::VirtualMemory* const memory = device().virtual_memory()) {
        const auto addresses = memory->reserve_addresses(ByteCount{memory->page().value});
        if (addresses) {
            const driver::Memory range{*addresses, memory->page().value};
            const Result<void> committed = memory->commit(range);
            if (committed)
                memory->decommit(range);
            else
                EXPECT_EQ(committed.error().status(), Status::mem_object_allocation_failure);
            memory->release_addresses(range);
        } else {
            EXPECT_EQ(addresses.error().status(), Status::mem_object_allocation_failure);
        }
    }
    if (driver::HostRegions* const regions = device().host_regions()) {
        constexpr size_t page = 4096;
        const std::span region{static_cast<std::byte*>(std::aligned_alloc(page, page)), page};
        const Result<void> added = regions->add(region);
        if (added)
            regions->remove(region);
        else
            EXPECT_NE(added.error().status(), Status::success);
        std::free(region.data());
    }
    if (driver::PeerCopy* const peer = device().peer_copy()) {
        EXPECT_FALSE(peer->link(device().info().space).has_value());
        EXPECT_FALSE(peer->link(SpaceId{40}).has_value());
    }
}

TEST_P(EveryDriver, AFenceThatWasReachedDoesNotCall) {
    const auto queue = make_queue();
    if (!queue->fence())
        GTEST_SKIP() << "has no fences";
    const Timepoint point = queue->marker({});
    wait(point);
    driver::FenceWaiter waiter{point.value, [](driver::FenceWaiter&) { ADD_FAILURE() << "was called"; }};
    EXPECT_FALSE(queue->fence()->notify(waiter));
}

// --- waiting for queues of other drivers ---

TEST_P(EveryDriver, AQueueOfAnotherDriverIsWaitedForWithAndWithoutItsFence) {
    for (const Fences fences : {Fences::call, Fences::refuse, Fences::are_none}) {
        FencedQueue other{fences};
        const auto queue = make_queue();
        const auto second = make_queue();
        const std::array waits{Timepoint{&other, 1}};
        const std::array later{Timepoint{&other, 2}};
        const Timepoint first = queue->marker({waits});
        const Timepoint last = queue->marker({later});
        const std::array both{first, Timepoint{&other, 3}};
        const Timepoint elsewhere = second->marker({both});
        queue->flush();
        second->flush();
        EXPECT_FALSE(first.is_complete());
        std::thread device([&] {
            for (uint64_t value = 1; value <= 3; ++value)
                other.reach(value);
        });
        wait(elsewhere);
        wait(last);
        device.join();
        EXPECT_TRUE(first.is_complete());
        EXPECT_EQ(queue->completed(), 2u);
    }
}

TEST_P(EveryDriver, AFlushedQueueGoesOnByItselfBehindAFence) {
    for (const Fences fences : {Fences::call, Fences::refuse, Fences::are_none}) {
        FencedQueue other{fences};
        const auto queue = make_queue();
        const std::array waits{Timepoint{&other, 1}};
        Timepoint last = queue->marker({waits});
        for (int i = 0; i < 100; ++i)
            last = queue->marker({});
        queue->flush();
        other.reach(1);
        while (!last.is_complete())
            std::this_thread::yield();
    }
}

// A thread that waits for one operation executes those of other threads before it returns. It does not wait for them.
TEST_P(EveryDriver, WhatIsFlushedBehindAWaitingThreadIsPublishedWithoutIt) {
    for (const Fences fences : {Fences::call, Fences::refuse, Fences::are_none})
        for (const bool has_times : {false, true}) {
            FencedQueue other{fences};
            const auto queue = make_queue();
            driver::OperationTimes times;
            const std::array waits{Timepoint{&other, 1}};
            const Timepoint first = queue->marker({waits});
            std::thread waiting([&] { queue->wait(first.value); });
            while (other.waiting_threads() + other.notified() == 0)
                std::this_thread::yield();
            const Timepoint last = queue->marker({{}, has_times ? &times : nullptr});
            queue->flush();
            other.reach(1);
            waiting.join();
            while (!last.is_complete())
                std::this_thread::yield();
        }
}

TEST_P(EveryDriver, AFailureBehindAFenceIsPassedOn) {
    for (const Fences fences : {Fences::call, Fences::refuse, Fences::are_none}) {
        FencedQueue other{fences};
        const auto queue = make_queue();
        std::atomic<int> calls{0};
        const std::array waits{Timepoint{&other, 1}};
        const Timepoint point = queue->call({count_call, &calls}, {waits});
        queue->flush();
        other.fail(1);
        other.reach(1);
        wait(point);
        EXPECT_EQ(queue->status(point.value), Status::exec_status_error_for_events_in_wait_list);
        EXPECT_EQ(calls.load(), 0);
    }
}

}  // namespace polder::conformance
