// The domain over devices stepped by hand: contents, order and exact bytes moved.
#include "support/memory_world.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <storage_impl.h>
#include <thread>

namespace polder::memory {
namespace {

using test::MemoryWorld;
using test::pattern;
using test::Peers;

constexpr uint64_t size = 1024;
const ByteRange whole{0, size};

class Transfer : public ::testing::Test {
protected:
    // Keeps `from` until the end of the test, as an application has to.
    driver::Timepoint write(Storage& storage, uint32_t space, ByteRange range, const std::vector<std::byte>& from,
                            driver::Waits waits = {}) {
        written_.push_back(from);
        return world.domain->write(world.on(space, waits), storage, StorageRect::of(range), written_.back().data(), {})
            .value();
    }
    driver::Timepoint read(Storage& storage, uint32_t space, ByteRange range, std::vector<std::byte>& to,
                           driver::Waits waits = {}) {
        return world.domain->read(world.on(space, waits), storage, StorageRect::of(range), to.data(), {}).value();
    }
    MemoryWorld world{{}};

private:
    std::deque<std::vector<std::byte>> written_;
};

TEST_F(Transfer, NothingIsAllocatedAtCreation) {
    const auto storage = world.storage(size);
    EXPECT_EQ(world.space(1).pool().statistics().live.value, 0u);
    ASSERT_TRUE(world.domain->reserve(*storage, SpaceId{1}));
    EXPECT_GE(world.space(1).pool().statistics().live.value, size);
    EXPECT_EQ(world.space(2).pool().statistics().live.value, 0u);
}

TEST_F(Transfer, WriteThenReadOnOtherDevice_CopiesOnlyTheStaleRange) {
    const auto storage = world.storage(size);
    const auto all = pattern(size, 1);
    const auto few = pattern(4, 99);
    auto done = write(*storage, 1, whole, all);
    done = world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
    EXPECT_EQ(world.moved(), 2 * size);  // from the application, and between the devices
    done = write(*storage, 1, {100, 104}, few, {&done, 1});
    EXPECT_EQ(world.moved(), 4u);
    std::vector<std::byte> seen(size);
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}},
                 [&](const auto& bytes) { seen.assign(bytes[0], bytes[0] + size); });
    EXPECT_EQ(world.moved(), 4u);
    world.world.run();
    auto expected = all;
    std::copy(few.begin(), few.end(), expected.begin() + 100);
    EXPECT_EQ(seen, expected);
}

TEST_F(Transfer, OverwriteCopiesNothingIn) {
    const auto storage = world.storage(size);
    auto done = write(*storage, 1, whole, pattern(size, 1));
    world.moved();
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::overwrite}});
    EXPECT_EQ(world.moved(), 0u);
}

TEST_F(Transfer, NeverWrittenBytesAreNotMoved) {
    const auto storage = world.storage(size);
    auto done = world.kernel(world.on(1), {{storage.get(), whole, Access::read}});
    done = world.kernel(world.on(2, {&done, 1}), {{storage.get(), {0, 10}, Access::read_write}});
    EXPECT_EQ(world.moved(), 0u);
    world.kernel(world.on(1, {&done, 1}), {{storage.get(), whole, Access::read}});
    EXPECT_EQ(world.moved(), 10u);
    EXPECT_TRUE(storage->validate());
}

TEST_F(Transfer, HalvesWrittenOnTwoDevicesAreReadWholeFromBoth) {
    const auto storage = world.storage(size);
    const auto left = pattern(size / 2, 3);
    const auto right = pattern(size / 2, 77);
    const driver::Timepoint written[] = {write(*storage, 1, {0, size / 2}, left),
                                         write(*storage, 2, {size / 2, size}, right)};
    EXPECT_EQ(world.moved(), size);
    std::vector<std::byte> seen(size);
    read(*storage, 1, whole, seen, written);
    EXPECT_EQ(world.moved(), size);
    world.world.run();
    EXPECT_TRUE(std::equal(left.begin(), left.end(), seen.begin()));
    EXPECT_TRUE(std::equal(right.begin(), right.end(), seen.begin() + size / 2));
    // Reading has not changed who holds what.
    world.kernel(world.on(1), {{storage.get(), whole, Access::read}});
    EXPECT_EQ(world.moved(), size / 2);
}

// The write that the reader depends on comes later in time than the reader's enqueueing, but is submitted first.
TEST_F(Transfer, ReaderSubmittedAfterAWriteSeesItWhateverRunsFirst) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        MemoryWorld steps{{.seed = seed}};
        const auto storage = steps.storage(size);
        const auto old_bytes = pattern(size, 1);
        const auto new_bytes = pattern(size, 50);
        auto done = steps.domain->write(steps.on(1), *storage, StorageRect::of(whole), old_bytes.data(), {}).value();
        done = steps.kernel(steps.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
        done = steps.domain->write(steps.on(1, {&done, 1}), *storage, StorageRect::of(whole), new_bytes.data(), {})
                   .value();
        std::vector<std::byte> seen;
        steps.kernel(steps.on(2, {&done, 1}, 1), {{storage.get(), whole, Access::read}},
                     [&](const auto& bytes) { seen.assign(bytes[0], bytes[0] + size); });
        steps.world.run();
        EXPECT_EQ(seen, new_bytes);
    }
}

TEST_F(Transfer, DeviceToDeviceGoesThroughHostMemoryAndLeavesNoReplicaThere) {
    const auto storage = world.storage(size);
    auto done = write(*storage, 1, whole, pattern(size, 1));
    world.moved();
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
    world.world.run();
    EXPECT_EQ(world.domain->ledger().entries().size(), 1u);
    EXPECT_EQ(world.domain->ledger().entries()[0].from, SpaceId{1});
    EXPECT_EQ(world.domain->ledger().entries()[0].to, SpaceId{2});
    world.space(0).pool().drain();
    EXPECT_EQ(world.space(0).pool().statistics().live_blocks, 1u);  // the reserve for staging
    EXPECT_EQ(world.space(0).pool().statistics().deferred.value, 0u);
}

TEST(TransferStaged, ManyChunksArriveInOrder) {
    constexpr uint64_t large = (uint64_t{3} << 20) + 12345;
    MemoryWorld world{{.seed = 7, .memory_bytes = uint64_t{8} << 20}};
    const auto storage = world.storage(large);
    const auto bytes = pattern(large, 9);
    auto done = world.domain->write(world.on(1), *storage, StorageRect::of({0, large}), bytes.data(), {}).value();
    std::vector<std::byte> seen;
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), {0, large}, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + large); });
    world.world.run();
    EXPECT_EQ(seen, bytes);
}

TEST(TransferPeer, CopiesDirectly) {
    MemoryWorld world{{.peers = Peers::all}};
    const auto storage = world.storage(size);
    const auto bytes = pattern(size, 9);
    auto done = world.domain->write(world.on(1), *storage, StorageRect::of(whole), bytes.data(), {}).value();
    world.world.run();
    const size_t before = world.world.operations_executed();
    std::vector<std::byte> seen;
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + size); });
    world.world.run();
    EXPECT_EQ(seen, bytes);
    EXPECT_EQ(world.world.operations_executed(), before + 2);
}

TEST_F(Transfer, CommandInPlaceWaitsForNothing) {
    const auto storage = world.storage(size);
    write(*storage, 1, whole, pattern(size, 1));
    const Use use{storage.get(), whole, Access::read_write};
    EXPECT_TRUE(world.waits_of_kernel(world.on(1), use).empty());
}

TEST_F(Transfer, OtherQueueWaitsForAnIncomingTransferItDidNotStart) {
    const auto storage = world.storage(size);
    auto done = write(*storage, 1, whole, pattern(size, 1));
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
    world.moved();
    const Use use{storage.get(), whole, Access::read};
    EXPECT_EQ(world.waits_of_kernel(world.on(2, {}, 1), use).size(), 1u);
    EXPECT_EQ(world.moved(), 0u);
}

TEST_F(Transfer, WriterWaitsForATransferThatStillReads) {
    const auto storage = world.storage(size);
    auto done = write(*storage, 1, whole, pattern(size, 1));
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
    const Use use{storage.get(), whole, Access::overwrite};
    EXPECT_EQ(world.waits_of_kernel(world.on(1, {}, 1), use).size(), 1u);
}

TEST_F(Transfer, MapIsZeroCopyWhereTheHostHoldsTheBytes) {
    const auto bytes = pattern(size, 5);
    const auto storage = world.storage(size, {.initial_contents = bytes.data()});
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    ASSERT_TRUE(world.domain->map(world.on(1), *storage, StorageRect::of(whole), MapAccess::read));
    world.world.run();
    EXPECT_EQ(world.moved(), 0u);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), storage->map_address()));
}

TEST_F(Transfer, MapForWritingBecomesTheNewestVersion) {
    const auto storage = world.storage(size);
    auto expected = pattern(size, 5);
    auto done = write(*storage, 1, whole, expected);
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    world.moved();
    const StorageRect part = StorageRect::of({100, 200});
    done = *world.domain->map(world.on(1, {&done, 1}), *storage, part, MapAccess::write);
    EXPECT_EQ(world.moved(), 100u);
    world.world.run();
    EXPECT_TRUE(std::equal(expected.begin() + 100, expected.begin() + 200, storage->map_address() + 100));
    storage->map_address()[150] = expected[150] = std::byte{42};
    done = *world.domain->unmap(world.on(1), *storage, part, MapAccess::write);
    std::vector<std::byte> seen(size);
    read(*storage, 2, whole, seen, {&done, 1});
    EXPECT_EQ(world.moved(), size - 100);
    world.world.run();
    EXPECT_EQ(seen, expected);
}

TEST_F(Transfer, MapOfARectangleIsOneTransferOfItsRows) {
    const auto storage = world.storage(size);
    auto done = write(*storage, 1, whole, pattern(size, 5));
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    world.moved();
    const StorageRect rect{32, {16, 8, 1}, {64, 0}};
    ASSERT_TRUE(world.domain->map(world.on(1, {&done, 1}), *storage, rect, MapAccess::read));
    EXPECT_EQ(world.moved(), 8u * 16);
    world.world.run();
    EXPECT_EQ(world.world.operations_executed(), 3u);  // write, transfer, marker
    EXPECT_EQ(storage->map_address()[32 + 64], pattern(size, 5)[32 + 64]);
}

size_t pieces(Storage& storage) { return static_cast<StorageImpl&>(storage).residency().pieces(); }

// Rectangles of many rows: one range for what is read, and for what is written where the device holds the bytes between the rows.
TEST_F(Transfer, ManyRowsAreOneRangeWhereOneDeviceHoldsAll) {
    const auto from = world.storage(size);
    const auto to = world.storage(size);
    write(*from, 1, whole, pattern(size, 5));
    write(*to, 1, whole, pattern(size, 6));
    world.world.run();
    const StorageRect rows{0, {8, 24, 1}, {32, 0}};
    ASSERT_TRUE(world.domain->copy(world.on(1), *from, rows, *to, rows));
    EXPECT_LE(pieces(*from), 2u);
    EXPECT_LE(pieces(*to), 2u);
    const std::vector<std::byte> source = pattern(24 * 8, 7);
    ASSERT_TRUE(world.domain->write(world.on(1), *to, rows, source.data(), {8, 24 * 8}));
    EXPECT_LE(pieces(*to), 2u);
    world.world.run();
    world.kernel(world.on(1), {{to.get(), whole, Access::read_write}, {from.get(), whole, Access::read}});
    EXPECT_EQ(pieces(*to), 1u);
    EXPECT_EQ(pieces(*from), 1u);
}

// Bytes between the rows that other devices hold as well stay theirs: only the rows move afterwards.
TEST_F(Transfer, ManyRowsStayApartWhereOthersHoldTheBytesBetween) {
    const auto storage = world.storage(size);
    std::vector<std::byte> expected = pattern(size, 5);
    driver::Timepoint done = write(*storage, 1, whole, expected);
    done = world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
    world.moved();
    const StorageRect rows{0, {8, 24, 1}, {32, 0}};
    const std::vector<std::byte> source = pattern(24 * 8, 7);
    done = *world.domain->write(world.on(1, {&done, 1}), *storage, rows, source.data(), {8, 24 * 8});
    EXPECT_EQ(pieces(*storage), 48u);
    EXPECT_EQ(world.moved(), source.size());
    for (ptrdiff_t y = 0; y < 24; ++y)
        std::copy_n(source.begin() + 8 * y, 8, expected.begin() + 32 * y);
    std::vector<std::byte> seen;
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}},
                 [&](const auto& bytes) { seen.assign(bytes[0], bytes[0] + size); });
    EXPECT_EQ(world.moved(), source.size());
    world.world.run();
    EXPECT_EQ(seen, expected);
}

// Small gaps that were never written are included with the rows; the other device's bytes are not.
TEST_F(Transfer, ManyRowsTakeSmallGapsThatWereNeverWritten) {
    const auto storage = world.storage(size);
    const std::vector<std::byte> left = pattern(24 * 8, 7), right = pattern(24 * 8, 9);
    const StorageRect left_rows{0, {8, 24, 1}, {32, 0}}, right_rows{16, {8, 24, 1}, {32, 0}};
    driver::Timepoint done = *world.domain->write(world.on(1), *storage, left_rows, left.data(), {8, 24 * 8});
    EXPECT_LE(pieces(*storage), 2u);
    done = *world.domain->write(world.on(2, {&done, 1}), *storage, right_rows, right.data(), {8, 24 * 8});
    EXPECT_GE(pieces(*storage), 48u);
    std::vector<std::byte> seen;
    world.kernel(world.on(1, {&done, 1}), {{storage.get(), whole, Access::read}},
                 [&](const auto& bytes) { seen.assign(bytes[0], bytes[0] + size); });
    world.world.run();
    for (size_t y = 0; y < 24; ++y) {
        EXPECT_TRUE(std::equal(&left[8 * y], &left[8 * y] + 8, &seen[32 * y])) << y;
        EXPECT_TRUE(std::equal(&right[8 * y], &right[8 * y] + 8, &seen[32 * y + 16])) << y;
    }
}

// Large gaps that were never written are not included: they would be moved with the rows.
TEST_F(Transfer, ManyRowsLeaveLargeGapsAlone) {
    constexpr uint64_t pitch = 8192;
    const auto storage = world.storage(20 * pitch);
    const std::vector<std::byte> source = pattern(20 * 8, 7);
    const StorageRect rows{0, {8, 20, 1}, {pitch, 0}};
    const driver::Timepoint done = *world.domain->write(world.on(1), *storage, rows, source.data(), {8, 20 * 8});
    world.moved();
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), {0, 20 * pitch}, Access::read}});
    EXPECT_EQ(world.moved(), source.size());
}

TEST_F(Transfer, MapThatInvalidatesMovesNothing) {
    const auto storage = world.storage(size);
    auto done = write(*storage, 1, whole, pattern(size, 5));
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    world.moved();
    done = *world.domain->map(world.on(1, {&done, 1}), *storage, StorageRect::of(whole), MapAccess::write_invalidate);
    EXPECT_EQ(world.moved(), 0u);
}

TEST_F(Transfer, AlignedApplicationMemoryIsUsedInPlace) {
    alignas(128) static std::byte memory[size];
    const auto storage = world.storage(size, {.application_memory = memory});
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    EXPECT_EQ(storage->map_address(), memory);
    world.kernel(world.on(0), {{storage.get(), whole, Access::write}},
                 [&](const auto& bytes) { bytes[0][7] = std::byte{7}; });
    world.world.run();
    EXPECT_EQ(memory[7], std::byte{7});
    EXPECT_EQ(world.moved(), 0u);
}

TEST_F(Transfer, UnalignedApplicationMemoryIsCopiedAndMapsShowTheResult) {
    alignas(128) static std::byte memory[size + 4];
    std::byte* const mine = memory + 4;
    mine[3] = std::byte{33};
    const auto storage = world.storage(size, {.application_memory = mine});
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    auto done = world.kernel(world.on(0), {{storage.get(), whole, Access::write}}, [&](const auto& bytes) {
        EXPECT_EQ(bytes[0][3], std::byte{33});
        bytes[0][5] = std::byte{55};
    });
    EXPECT_EQ(world.moved(), size);
    done = *world.domain->map(world.on(0, {&done, 1}), *storage, StorageRect::of(whole), MapAccess::read);
    world.world.run();
    EXPECT_EQ(world.moved(), size);
    EXPECT_EQ(storage->map_address(), mine);
    EXPECT_EQ(mine[5], std::byte{55});
}

TEST_F(Transfer, MigrationMovesOnceAndThenNothing) {
    const auto storage = world.storage(size);
    auto done = write(*storage, 1, whole, pattern(size, 5));
    world.moved();
    const Use use{storage.get(), whole, Access::read};
    done = *world.domain->migrate(world.on(2, {&done, 1}), {&use, 1}, SpaceId{2}, Domain::Content::kept);
    EXPECT_EQ(world.moved(), size);
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read_write}});
    EXPECT_EQ(world.moved(), 0u);
    done = *world.domain->migrate(world.on(1), {&use, 1}, SpaceId{1}, Domain::Content::undefined);
    EXPECT_EQ(world.moved(), 0u);
    EXPECT_TRUE(storage->validate());
}

TEST_F(Transfer, RectanglesMoveOnlyTheirRows) {
    const auto storage = world.storage(size);
    auto expected = pattern(size, 5);
    auto done = write(*storage, 1, whole, expected);
    done = world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
    world.moved();
    const auto rows = pattern(8 * 16, 200);
    const StorageRect rect{32, {16, 8, 1}, {64, 0}};  // 8 rows of 16 bytes, 64 apart
    done = *world.domain->write(world.on(1, {&done, 1}), *storage, rect, rows.data(), {16, 128});
    EXPECT_EQ(world.moved(), rows.size());
    for (uint64_t y = 0; y < 8; ++y)
        std::copy_n(rows.begin() + static_cast<ptrdiff_t>(y * 16), 16,
                    expected.begin() + static_cast<ptrdiff_t>(32 + y * 64));
    std::vector<std::byte> seen;
    done = world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}},
                        [&](const auto& bytes) { seen.assign(bytes[0], bytes[0] + size); });
    EXPECT_EQ(world.moved(), rows.size());
    world.world.run();
    EXPECT_EQ(seen, expected);
}

TEST_F(Transfer, CopyStreamsFromTheHolderWithoutMakingAReplica) {
    const auto from = world.storage(size);
    const auto to = world.storage(size);
    const auto bytes = pattern(size, 5);
    auto done = write(*from, 1, whole, bytes);
    world.moved();
    done = *world.domain->copy(world.on(2, {&done, 1}), *from, StorageRect::of({0, 100}), *to,
                               StorageRect::of({200, 300}));
    EXPECT_EQ(world.moved(), 100u);
    EXPECT_EQ(world.space(2).pool().statistics().live_blocks, 1u);
    std::vector<std::byte> seen(100);
    read(*to, 2, {200, 300}, seen, {&done, 1});
    world.world.run();
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), bytes.begin()));
}

TEST_F(Transfer, CopyToTheHostFromADeviceKeepsTheOrderOfTheQueue) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        MemoryWorld steps{{.seed = seed}};
        const auto from = steps.storage(size);
        const auto to = steps.storage(size);
        const auto bytes = pattern(size, 5);
        std::vector<std::byte> before;
        auto done = steps.domain->write(steps.on(1), *from, StorageRect::of(whole), bytes.data(), {}).value();
        const std::byte one{1};
        ASSERT_TRUE(steps.domain->fill(steps.on(0), *to, whole, {&one, 1}));
        steps.kernel(steps.on(0), {{to.get(), whole, Access::read}},
                     [&](const auto& at) { before.assign(at[0], at[0] + size); });
        done = *steps.domain->copy(steps.on(0, {&done, 1}), *from, StorageRect::of(whole), *to, StorageRect::of(whole));
        std::vector<std::byte> seen;
        steps.kernel(steps.on(0), {{to.get(), whole, Access::read}},
                     [&](const auto& at) { seen.assign(at[0], at[0] + size); });
        steps.world.run();
        EXPECT_EQ(before, std::vector<std::byte>(size, one));
        EXPECT_EQ(seen, bytes);
    }
}

TEST_F(Transfer, MemoryOfAReleasedStorageWaitsForTheWorkOnIt) {
    std::atomic<int> destroyed{0};
    {
        const auto storage = world.storage(size);
        storage->on_destroyed({[](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &destroyed});
        write(*storage, 1, whole, pattern(size, 5));
    }
    EXPECT_EQ(destroyed, 0);
    world.space(1).pool().drain();
    EXPECT_EQ(world.space(1).pool().statistics().deferred_blocks, 1u);
    world.world.run();
    for (int i = 0; i < 1000 && destroyed == 0; ++i)  // on the callback thread
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(destroyed, 1);
    world.space(1).pool().drain();
    EXPECT_EQ(world.space(1).pool().statistics().deferred_blocks, 0u);
}

}  // namespace
}  // namespace polder::memory
