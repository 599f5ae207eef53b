// What a queue remembers about failed operations: exact for as long as anybody asks, in bounded memory.
#include "../unit/support/stub_queue.h"

#include <array>
#include <gtest/gtest.h>
#include <host/failure_log.h>
#include <host/host_queue.h>
#include <malloc.h>
#include <map>

namespace polder::devices {
namespace {

constexpr Status wait_failed = Status::exec_status_error_for_events_in_wait_list;

TEST(FailureLog, StatusesAreThoseThatWereNoted) {
    FailureLog log;
    std::map<uint64_t, Status> expected;
    uint64_t value = 0;
    for (uint64_t i = 0; i < FailureLog::runs_max; ++i) {
        value += 1 + i % 3;
        const Status status = i % 5 < 2 ? Status::out_of_resources : wait_failed;
        log.note(value, status);
        expected[value] = status;
    }
    EXPECT_LT(log.runs(), FailureLog::runs_max);
    for (uint64_t at = 0; at < value + 3; ++at) {
        const auto found = expected.find(at);
        ASSERT_EQ(log.status(at), found == expected.end() ? Status::success : found->second) << at;
    }
}

TEST(FailureLog, ManySeparateFailuresNeedBoundedMemoryAndNoneIsForgotten) {
    FailureLog log;
    constexpr uint64_t failures = 1'000'000;
    for (uint64_t i = 1; i <= failures; ++i) {
        log.note(2 * i, wait_failed);
        ASSERT_LE(log.runs(), FailureLog::runs_max);
    }
    for (uint64_t i = 1; i <= failures; ++i)
        ASSERT_EQ(log.status(2 * i), wait_failed) << i;
    for (uint64_t i = failures - FailureLog::runs_max / 2; i <= failures; ++i)
        ASSERT_EQ(log.status(2 * i + 1), Status::success) << i;
    EXPECT_EQ(log.status(1), Status::success);
}

TEST(FailureLog, ValuesBeforeTheNewestAreNotedInTheirPlace) {
    FailureLog log;
    std::map<uint64_t, Status> expected;
    const auto note = [&](uint64_t value, Status status) {
        log.note(value, status);
        expected.emplace(value, status);  // the first status stays
    };
    for (uint64_t value = 1000; value > 0; value -= 10) {
        note(2000 - value, wait_failed);
        note(value, value % 20 == 0 ? wait_failed : Status::out_of_resources);
        note(value + 1, wait_failed);
        note(value, Status::out_of_resources);
    }
    for (uint64_t at = 0; at < 2010; ++at) {
        const auto found = expected.find(at);
        ASSERT_EQ(log.status(at), found == expected.end() ? Status::success : found->second) << at;
    }
    for (uint64_t i = FailureLog::runs_max + 1000; i > 0; --i) {
        log.note(3000 + 2 * i, wait_failed);
        ASSERT_LE(log.runs(), FailureLog::runs_max);
    }
    for (uint64_t i = FailureLog::runs_max + 1000; i > 0; --i)
        ASSERT_EQ(log.status(3000 + 2 * i), wait_failed) << i;
}

TEST(HostQueueFailures, AChainOfFailedOperationsNeedsNoMemoryForEach) {
    test::FailedQueue other;
    WorkerPool pool{{.thread_name = "test", .places = {{}}}};
    HostQueue queue{pool, {}};
    driver::Timepoint last{&other, 1};
    constexpr uint64_t operations = 200'000;
    const size_t before = mallinfo2().uordblks;
    for (uint64_t i = 0; i < operations; ++i) {
        const std::array waits{last};
        last = queue.marker({waits});
        if (i % 1000 == 0)
            queue.wait(last.value);
    }
    queue.wait(last.value);
    EXPECT_LT(mallinfo2().uordblks, before + (size_t{1} << 20));
    for (uint64_t value = 1; value <= operations; ++value)
        ASSERT_EQ(queue.status(value), wait_failed);
    const driver::Timepoint independent = queue.marker({});
    queue.wait(independent.value);
    EXPECT_EQ(queue.status(independent.value), Status::success);
}

}  // namespace
}  // namespace polder::devices
