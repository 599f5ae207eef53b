// Transfers that fail, and commands that fail halfway.
#include "support/memory_world.h"

#include <algorithm>
#include <map>
#include <storage_impl.h>

namespace polder::memory {
namespace {

using test::FakeQueue;
using test::MemoryWorld;
using test::pattern;

constexpr uint64_t size = 1024;
const ByteRange whole{0, size};

class TransferFaults : public ::testing::Test {
protected:
    void SetUp() override {
        bytes = pattern(size, 7);
        storage = world.storage(size);
        ASSERT_TRUE(world.domain->write(world.on(1), *storage, StorageRect::of(whole), bytes.data(), {}));
        world.world.run();
    }
    // The copies that are submitted in between fail.
    void break_copies() {
        world.world.on_copy = [](FakeQueue& queue) { queue.fail_next(); };
    }
    void mend_copies() { world.world.on_copy = {}; }
    [[nodiscard]] bool holds(uint32_t space) {
        bool all = true;
        static_cast<StorageImpl&>(*storage).residency().visit(
            whole, [&](ByteRange, const RangeState& state) { all = all && state.holders.contains(SpaceId{space}); });
        return all;
    }

    MemoryWorld world{{}};
    std::vector<std::byte> bytes;
    Ref<Storage> storage;
};

TEST_F(TransferFaults, BytesOfAFailedTransferAreMovedAgain) {
    break_copies();
    const auto failed = world.kernel(world.on(2), {{storage.get(), whole, Access::read}});
    mend_copies();
    world.world.run();
    EXPECT_NE(failed.queue->status(failed.value), Status::success);
    std::vector<std::byte> seen;
    const auto done = world.kernel(world.on(2), {{storage.get(), whole, Access::read}},
                                   [&](const auto& at) { seen.assign(at[0], at[0] + size); });
    EXPECT_TRUE(holds(1));
    world.world.run();
    EXPECT_EQ(done.queue->status(done.value), Status::success);
    EXPECT_EQ(seen, bytes);
}

TEST_F(TransferFaults, AFailedTransferToTheHostIsNotTheSourceOfAnother) {
    break_copies();
    const Use use{storage.get(), whole, Access::read};
    ASSERT_TRUE(world.domain->migrate(world.on(1), {&use, 1}, host_space, Domain::Content::kept));
    mend_copies();
    world.world.run();
    std::vector<std::byte> seen;
    world.kernel(world.on(2), {use}, [&](const auto& at) { seen.assign(at[0], at[0] + size); });
    world.world.run();
    EXPECT_EQ(seen, bytes);
    EXPECT_TRUE(storage->validate());
}

// A kernel has written over bytes that never arrived: its result is the only content.
TEST_F(TransferFaults, TheOnlyHolderStaysOne) {
    break_copies();
    world.kernel(world.on(2), {{storage.get(), whole, Access::read_write}});
    mend_copies();
    world.world.run();
    world.kernel(world.on(2), {{storage.get(), whole, Access::read}});
    world.world.run();
    EXPECT_TRUE(storage->validate());
    EXPECT_TRUE(holds(2));
}

// The transfers of a device that is lost fail before the command that needs them is submitted.
TEST_F(TransferFaults, ACommandFailsWhenATransferToItHasFailedAlready) {
    world.world.copies_at_once = true;
    const auto fails = [&](const Result<driver::Timepoint>& done) {
        EXPECT_TRUE(done);
        world.world.run();
        return done && done->queue->status(done->value) != Status::success;
    };
    const Use use{storage.get(), whole, Access::read};
    break_copies();
    EXPECT_TRUE(fails(world.kernel(world.on(0), {use})));
    break_copies();
    EXPECT_TRUE(fails(world.domain->migrate(world.on(0), {&use, 1}, host_space, Domain::Content::kept)));
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    for (const MapAccess access : {MapAccess::read, MapAccess::write, MapAccess::read_write}) {
        break_copies();
        EXPECT_TRUE(fails(world.domain->map(world.on(0), *storage, StorageRect::of(whole), access)));
    }
    break_copies();
    const auto target = world.storage(size);
    EXPECT_TRUE(
        fails(world.domain->copy(world.on(2), *storage, StorageRect::of(whole), *target, StorageRect::of(whole))));
    // A rectangle, which has no short path.
    const StorageRect rows{0, {size / 4, 2, 1}, {size / 2, size}};
    break_copies();
    EXPECT_TRUE(fails(world.domain->map(world.on(0), *storage, rows, MapAccess::read)));
    mend_copies();
    EXPECT_FALSE(fails(world.kernel(world.on(0), {use})));
    EXPECT_TRUE(storage->validate());
}

// It has failed, so it has written nothing: the bytes are what the failed transfer has left. Commands that read them fail, until one overwrites them.
TEST_F(TransferFaults, AfterACommandThatWouldHaveChangedBytesThatNeverArrivedNoneReadsThem) {
    const auto status_of = [&](const driver::Timepoint& done) {
        world.world.run();
        return done.queue->status(done.value);
    };
    for (const Access access : {Access::write, Access::read_write}) {
        break_copies();
        const auto failed = world.kernel(world.on(2), {{storage.get(), whole, access}});
        mend_copies();
        EXPECT_NE(status_of(failed), Status::success);
        for (const uint32_t space : {2u, 1u, 0u}) {
            bool was_executed = false;
            const auto next = world.kernel(world.on(space), {{storage.get(), whole, Access::read}},
                                           [&](const auto&) { was_executed = true; });
            EXPECT_NE(status_of(next), Status::success);
            EXPECT_FALSE(was_executed);
        }
        const auto change = world.kernel(world.on(2), {{storage.get(), whole, Access::read_write}});
        EXPECT_NE(status_of(change), Status::success);
        ASSERT_TRUE(world.domain->write(world.on(1), *storage, StorageRect::of(whole), bytes.data(), {}));
        std::vector<std::byte> seen;
        const auto done = world.kernel(world.on(2), {{storage.get(), whole, Access::read}},
                                       [&](const auto& at) { seen.assign(at[0], at[0] + size); });
        EXPECT_EQ(status_of(done), Status::success);
        EXPECT_EQ(seen, bytes);
        EXPECT_TRUE(storage->validate());
        const auto back = world.kernel(world.on(1), {{storage.get(), whole, Access::read_write}});  // held there alone
        EXPECT_EQ(status_of(back), Status::success);
    }
}

// More storages than there are hidden queues come to one device by one command, so that several transfers are on one queue; the first fails, later ones succeed.
TEST_F(TransferFaults, ACommandFailsWhenTheFirstOfSeveralTransfersOnOneQueueFails) {
    constexpr size_t count = 200;
    std::vector<Ref<Storage>> storages;
    std::vector<Use> uses;
    for (size_t i = 0; i < count; ++i) {
        storages.push_back(world.storage(size));
        ASSERT_TRUE(world.domain->write(world.on(0), *storages.back(), StorageRect::of(whole), bytes.data(), {}));
        uses.push_back({storages.back().get(), whole, Access::read});
    }
    world.world.run();
    std::map<FakeQueue*, int> copies;
    world.world.on_copy = [&](FakeQueue& queue) {
        if (copies[&queue]++ == 0)
            queue.fail_next();
    };
    bool was_executed = false;
    const auto done = world.kernel(world.on(1), uses, [&](const auto&) { was_executed = true; });
    mend_copies();
    ASSERT_LT(copies.size(), count) << "several transfers on one queue";
    world.world.run();
    EXPECT_NE(done.queue->status(done.value), Status::success);
    EXPECT_FALSE(was_executed);
    // At the next use all bytes are there.
    size_t same = 0;
    const auto next = world.kernel(world.on(1), uses, [&](const auto& at) {
        for (const std::byte* each : at)
            same += std::equal(each, each + size, bytes.begin()) ? 1 : 0;
    });
    world.world.run();
    EXPECT_EQ(next.queue->status(next.value), Status::success);
    EXPECT_EQ(same, count);
}

// The same for parts of one storage, and for a transfer that goes on from where a failed one should have brought the bytes.
TEST_F(TransferFaults, ATransferFailsWhenTheFirstOfSeveralThatItReadsFails) {
    constexpr uint64_t part = 64;
    constexpr size_t count = 400;
    const auto split = world.storage(part * count);
    const auto all = pattern(part * count, 3);
    ASSERT_TRUE(world.domain->write(world.on(0), *split, StorageRect::of({0, part * count}), all.data(), {}));
    world.world.run();
    std::map<FakeQueue*, int> copies;
    world.world.on_copy = [&](FakeQueue& queue) {
        if (copies[&queue]++ == 0)
            queue.fail_next();
    };
    for (size_t i = 0; i < count; ++i)
        world.kernel(world.on(1), {{split.get(), {i * part, (i + 1) * part}, Access::read}});
    mend_copies();
    ASSERT_LT(copies.size(), count) << "several transfers on one queue";
    auto& residency = static_cast<StorageImpl&>(*split).residency();
    residency.drop({0, part * count}, host_space);  // as an eviction does
    std::vector<std::byte> to(part * count);
    const auto read = world.domain->read(world.on(2), *split, StorageRect::of({0, to.size()}), to.data(), {});
    ASSERT_TRUE(read);
    world.world.run();
    EXPECT_NE(read->queue->status(read->value), Status::success);
    EXPECT_TRUE(split->validate());
}

// Its bytes had left the source when the transfer failed: no memory has them any more, so commands that read them fail, until some
// command writes them.
TEST_F(TransferFaults, BytesThatAreLostAreNotRead) {
    break_copies();
    world.kernel(world.on(0), {{storage.get(), whole, Access::read}});
    mend_copies();
    auto& residency = static_cast<StorageImpl&>(*storage).residency();
    residency.drop(whole, SpaceId{1});  // as an eviction does
    world.world.run();
    const auto status_of = [&](const driver::Timepoint& done) {
        world.world.run();
        return done.queue->status(done.value);
    };
    for (int i = 0; i < 2; ++i) {
        EXPECT_NE(status_of(world.kernel(world.on(0), {{storage.get(), whole, Access::read}})), Status::success);
        EXPECT_NE(status_of(world.kernel(world.on(2), {{storage.get(), whole, Access::read}})), Status::success);
        std::vector<std::byte> to(size);
        const auto read = world.domain->read(world.on(0), *storage, StorageRect::of(whole), to.data(), {});
        ASSERT_TRUE(read);
        EXPECT_NE(status_of(*read), Status::success);
    }
    EXPECT_TRUE(storage->validate());
    world.kernel(world.on(0), {{storage.get(), whole, Access::overwrite}},
                 [&](const auto& at) { std::ranges::copy(bytes, at[0]); });
    std::vector<std::byte> seen;
    const auto done = world.kernel(world.on(2), {{storage.get(), whole, Access::read}},
                                   [&](const auto& at) { seen.assign(at[0], at[0] + size); });
    EXPECT_EQ(status_of(done), Status::success);
    EXPECT_EQ(seen, bytes);
}

// The first part is on the command's queue, the second would be on a hidden queue that cannot be created.
TEST_F(TransferFaults, AReadThatFailsHalfwayDoesNotGoOnWriting) {
    const auto right = pattern(size / 2, 99);
    ASSERT_TRUE(world.domain->write(world.on(2), *storage, StorageRect::of({0, size / 2}), right.data(), {}));
    world.world.run();
    world.devices[1]->refuse_queues();
    std::vector<std::byte> to(size);
    const auto result = world.domain->read(world.on(2), *storage, StorageRect::of(whole), to.data(), {});
    ASSERT_FALSE(result);
    std::fill(to.begin(), to.end(), std::byte{0xEE});
    world.world.run();
    EXPECT_EQ(to, std::vector<std::byte>(size, std::byte{0xEE}));
}

TEST_F(TransferFaults, ACopyThatFailsHalfwayKeepsItsSourceUntilItIsRead) {
    const auto left = pattern(size / 2, 99);
    ASSERT_TRUE(world.domain->write(world.on(0), *storage, StorageRect::of({0, size / 2}), left.data(), {}));
    world.world.run();
    world.devices[1]->refuse_queues();
    const auto target = world.storage(size);
    ASSERT_TRUE(world.domain->reserve(*target, host_space));
    // From the host's half and the device's, on a queue that cannot reach the device.
    const auto result =
        world.domain->copy(world.on(0), *storage, StorageRect::of(whole), *target, StorageRect::of(whole));
    ASSERT_FALSE(result);
    EXPECT_TRUE(target->validate());
    std::vector<std::byte> seen(size / 2);
    ASSERT_TRUE(world.domain->read(world.on(0), *target, StorageRect::of({0, size / 2}), seen.data(), {}));
    world.world.run();
    EXPECT_EQ(seen, left);  // the part that was submitted is known
}

// Both parts are on the command's queue: one comes from the host, the other is there. The second one succeeds.
TEST_F(TransferFaults, ACommandOfSeveralPartsReportsTheFirstFailure) {
    const auto left = pattern(size / 2, 99);
    ASSERT_TRUE(world.domain->write(world.on(0), *storage, StorageRect::of({0, size / 2}), left.data(), {}));
    world.world.run();
    const auto target = world.storage(size);
    int copies = 0;
    world.world.on_copy = [&](FakeQueue& queue) {
        if (copies++ == 0)
            queue.fail_next();
    };
    const auto done =
        world.domain->copy(world.on(1), *storage, StorageRect::of(whole), *target, StorageRect::of(whole));
    ASSERT_TRUE(done);
    world.world.run();
    EXPECT_EQ(copies, 2);
    EXPECT_NE(done->queue->status(done->value), Status::success);
}

TEST_F(TransferFaults, AStagedCopyReportsTheFailureOfItsFirstChunk) {
    constexpr uint64_t large = uint64_t{600} << 10;
    const auto source = world.storage(large);
    const auto target = world.storage(large);
    const auto content = pattern(large, 3);
    ASSERT_TRUE(world.domain->write(world.on(1), *source, StorageRect::of({0, large}), content.data(), {}));
    world.world.run();
    int copies = 0;
    world.world.on_copy = [&](FakeQueue& queue) {
        if (copies++ == 1)  // into the target, of the first chunk
            queue.fail_next();
    };
    const auto done =
        world.domain->copy(world.on(2), *source, StorageRect::of({0, large}), *target, StorageRect::of({0, large}));
    ASSERT_TRUE(done);
    world.world.run();
    EXPECT_GT(copies, 2);
    EXPECT_NE(done->queue->status(done->value), Status::success);
}

// The event that a command waits for is of the same queue, and its operation has failed already.
TEST_F(TransferFaults, ACommandFailsWhenAnEventOfItsOwnQueueHasFailed) {
    world.queue(1).fail_next();
    const auto failed = world.queue(1).submit({}, [] {});
    world.world.run();
    const auto kernel = world.kernel(world.on(1, {&failed, 1}), {{storage.get(), whole, Access::read}});
    const std::byte one{1};
    const auto fill = world.domain->fill(world.on(1, {&failed, 1}), *storage, whole, {&one, 1});
    const auto unrelated = world.kernel(world.on(1), {{storage.get(), whole, Access::read}});
    ASSERT_TRUE(fill);
    world.world.run();
    EXPECT_NE(kernel.queue->status(kernel.value), Status::success);
    EXPECT_NE(fill->queue->status(fill->value), Status::success);
    EXPECT_EQ(unrelated.queue->status(unrelated.value), Status::success);
}

}  // namespace
}  // namespace polder::memory
