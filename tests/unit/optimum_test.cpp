// The optimum that polder-memory compares with, on made-up traces whose best eviction is known.
#include "trace/optimum.h"

#include <gtest/gtest.h>

namespace polder::trace {
namespace {

constexpr uint64_t KiB = 1024;

class Optimum : public testing::Test {
protected:
    void memory(uint64_t bytes) {
        Event event{};
        event.kind = Kind::space;
        event.space = 1;
        event.size = bytes;
        add(event);
    }
    void launch(std::initializer_list<uint64_t> storages, uint8_t flags, ByteRange range = {0, KiB}) {
        Event event{};
        event.kind = Kind::launch;
        event.space = 1;
        event.size = storages.size();
        add(event);
        for (const uint64_t storage : storages) {
            event = {};
            event.kind = Kind::use;
            event.space = 1;
            event.storage = storage;
            event.address = range.begin;
            event.size = range.size();
            event.flags = flags;
            add(event);
        }
    }
    void transfer(uint64_t storage, uint8_t from, uint8_t to, uint8_t flags, ByteRange range = {0, KiB}) {
        Event event{};
        event.kind = Kind::transfer;
        event.space = from;
        event.other_space = to;
        event.storage = storage;
        event.address = range.begin;
        event.size = range.size();
        event.flags = flags;
        add(event);
    }
    // Records what a fill on the host records.
    void host_has(uint64_t storage) { transfer(storage, 0, 0, commanded | writes); }
    void destroy(uint64_t storage) {
        Event event{};
        event.kind = Kind::storage_destroy;
        event.storage = storage;
        add(event);
    }
    MovesOfSpace moves() {
        const auto all = compare_with_optimum(trace_);
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? MovesOfSpace{} : all[0];
    }

    void add(const Event& event) {
        TimedEvent timed;
        timed.event = event;
        timed.ns = trace_.events.size();
        trace_.events.push_back(timed);
    }

private:
    TraceFile trace_;
};

TEST_F(Optimum, WhatFitsIsMovedOnce) {
    memory(4 * KiB);
    for (uint64_t s = 1; s <= 3; ++s)
        host_has(s);
    for (int pass = 0; pass < 5; ++pass)
        launch({1, 2, 3}, reads);
    transfer(1, 0, 1, 0);
    const MovesOfSpace row = moves();
    EXPECT_EQ(row.optimum_bytes, 3 * KiB);
    EXPECT_EQ(row.moved_bytes, KiB);
    EXPECT_EQ(row.launches, 5u);
    EXPECT_EQ(row.used_bytes, 3 * KiB);
}

// Belady's example: of n pieces in turns with room for m, all but m - 1 of each n - 1 uses are misses. The least recently used one
// would always be missing.
TEST_F(Optimum, ACyclicSweepKeepsMostOfTheMemory) {
    memory(3 * KiB);
    for (uint64_t s = 1; s <= 4; ++s)
        host_has(s);
    // 1 2 3 [4 for 3] 1 2 [3 for 2] 4 1 [2 for 1] 3 4 [1 for 4] 2 3 ...: after the first three one miss in three uses
    for (int use = 0; use < 13; ++use)
        launch({static_cast<uint64_t>(1 + use % 4)}, reads);
    EXPECT_EQ(moves().optimum_bytes, (3 + 4) * KiB);
}

TEST_F(Optimum, ChangedBytesAreWrittenBackOnlyWhenTheyAreReadAgain) {
    memory(KiB);
    launch({1}, writes);
    launch({2}, writes);  // 1 is written back
    launch({1}, reads);  // and comes again; 2 is not needed any more
    EXPECT_EQ(moves().optimum_bytes, 2 * KiB);
}

TEST_F(Optimum, BytesThatAreOverwrittenAreNotMoved) {
    memory(KiB);
    for (int i = 0; i < 4; ++i) {
        launch({1}, writes);
        launch({2}, writes);
    }
    EXPECT_EQ(moves().optimum_bytes, 0u);
}

TEST_F(Optimum, TheApplicationsOwnCopiesCountInBoth) {
    memory(4 * KiB);
    transfer(1, 0, 1, commanded | writes);
    launch({1}, reads | writes);
    transfer(1, 1, 0, commanded | reads);
    transfer(1, 1, 0, commanded | reads);
    const MovesOfSpace row = moves();
    EXPECT_EQ(row.moved_bytes, 3 * KiB);
    EXPECT_EQ(row.optimum_bytes, 3 * KiB);
}

TEST_F(Optimum, MapsAreUsesOfTheHost) {
    const auto map = [&](Kind kind) {
        Event event{};
        event.kind = kind;
        event.storage = 1;
        event.size = KiB;
        add(event);
    };
    memory(4 * KiB);
    launch({1}, writes);
    map(Kind::map);
    map(Kind::map);  // is there
    map(Kind::unmap);
    launch({1}, reads);
    EXPECT_EQ(moves().optimum_bytes, 2 * KiB);
}

TEST_F(Optimum, DestroyedStoragesLeaveTheirMemory) {
    memory(KiB);
    for (uint64_t s = 1; s <= 5; ++s) {
        launch({s}, writes);
        launch({s}, reads | writes);
        destroy(s);
    }
    EXPECT_EQ(moves().optimum_bytes, 0u);
}

TEST_F(Optimum, PartsAreCountedByTheirBytes) {
    memory(2 * KiB);
    launch({1}, writes, {0, KiB});
    launch({1}, writes, {KiB, 2 * KiB});
    launch({2}, writes, {0, 512});  // half of a piece would be enough, but pieces are evicted whole
    launch({1}, reads, {0, 2 * KiB});
    EXPECT_EQ(moves().optimum_bytes, 2 * KiB);
}

}  // namespace
}  // namespace polder::trace
