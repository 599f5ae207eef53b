// The ledger's counters, with threads that have a copy of their own and threads that share one.
#include "ledger_impl.h"

#include <gtest/gtest.h>
#include <latch>
#include <thread>
#include <vector>

namespace polder::memory {
namespace {

std::vector<SpaceId> spaces(uint32_t count) {
    std::vector<SpaceId> ids;
    for (uint32_t number = 0; number < count; ++number)
        ids.push_back(SpaceId{number});
    return ids;
}

// All threads exist at the same time, so that they have different numbers.
void count_with_threads(LedgerImpl& ledger, uint32_t thread_count, uint64_t rounds) {
    std::latch begun{thread_count};
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < thread_count; ++i)
        threads.emplace_back([&] {
            static_cast<void>(thread_number());
            begun.arrive_and_wait();
            for (uint64_t round = 0; round < rounds; ++round) {
                ledger.add_moved_as_needed(SpaceId{0}, SpaceId{1}, ByteCount{3});
                ledger.add_moved(SpaceId{1}, SpaceId{0}, ByteCount{5});
                ledger.add_needed(SpaceId{1}, SpaceId{0}, ByteCount{2});
                ledger.add_gathered(SpaceId{1}, ByteCount{7});
            }
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST(Ledger, CountsOfAllThreadsAreAddedUp) {
    constexpr uint32_t threads = 40;  // more than there are copies
    constexpr uint64_t rounds = 50'000;
    for (const uint32_t count : {2u, 8u, 9u, 20u}) {
        LedgerImpl ledger{spaces(count)};
        count_with_threads(ledger, threads, rounds);
        constexpr uint64_t calls = threads * rounds;
        EXPECT_EQ(ledger.moved_bytes(), calls * 8) << count;
        EXPECT_EQ(ledger.needed_bytes(), calls * 5) << count;
        EXPECT_EQ(ledger.gathered_bytes(), calls * 7) << count;
        ASSERT_EQ(ledger.entries().size(), 3u) << count;
        EXPECT_EQ(ledger.entries()[0].transfers, calls) << count;
        ledger.reset();
        EXPECT_TRUE(ledger.entries().empty()) << count;
    }
}

TEST(Ledger, CopiesWithinOneSpaceAreNotCountedAsMoved) {
    LedgerImpl ledger{spaces(2)};
    ledger.add_moved(SpaceId{1}, SpaceId{1}, ByteCount{5});
    ledger.add_moved_as_needed(SpaceId{1}, SpaceId{1}, ByteCount{5});
    ledger.add_needed(SpaceId{1}, SpaceId{1}, ByteCount{5});
    EXPECT_TRUE(ledger.entries().empty());
    EXPECT_EQ(ledger.needed_bytes(), 0u);
}

}  // namespace
}  // namespace polder::memory
