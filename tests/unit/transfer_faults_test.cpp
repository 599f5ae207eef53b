// Transfers that fail, and commands that fail halfway.
#include "support/memory_world.h"

#include <algorithm>
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

// What a kernel has written over bytes that never arrived is the only content there is.
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

} // namespace
} // namespace polder::memory
