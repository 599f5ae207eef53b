// Memory that the host and a device with unified memory share: when it is linked, and how often its owner changes, exactly. The
// fake devices fail the test when one side uses what belongs to the other.
#include "support/linked_fixture.h"

#include <vector>

namespace polder::memory {
namespace {

using test::apart;
using test::FakeQueue;
using test::LinkedMemory;
using test::MemoryWorld;
using test::pattern;
using test::shared;
using test::size;

TEST_F(LinkedMemory, HostFirstThenDevice) {
    const auto storage = written(host_space);
    use(*storage, shared, Access::read_write);
    expect_switches(0, 1);
    EXPECT_TRUE(is_linked(*storage));
    EXPECT_EQ(blocks(shared), 0u);
    EXPECT_EQ(blocks(host_space), 1u);
    use(*storage, host_space, Access::read_write);
    expect_switches(1, 1);
    EXPECT_EQ(moved(), 0u);
    EXPECT_EQ(world.domain->ledger().needed_bytes(), 0u);
    EXPECT_EQ(read(*storage, host_space), pattern(size, 3));
    EXPECT_TRUE(storage->validate());
}

TEST_F(LinkedMemory, DeviceFirstThenHost) {
    const auto storage = world.storage(size);
    use(*storage, shared, Access::overwrite);
    expect_switches(0, 1);
    EXPECT_TRUE(is_linked(*storage));
    EXPECT_EQ(blocks(shared), 0u);
    EXPECT_EQ(blocks(host_space), 1u);
    EXPECT_EQ(read(*storage, host_space), std::vector<std::byte>(size, std::byte{3}));
    expect_switches(1, 1);
    EXPECT_EQ(moved(), 0u);
}

TEST_F(LinkedMemory, UsesOnTheSameSideSwitchNothing) {
    const auto storage = written(host_space);
    for (int i = 0; i < 3; ++i)
        use(*storage, shared, Access::read_write);
    expect_switches(0, 1);
    for (int i = 0; i < 3; ++i)
        use(*storage, host_space, Access::read);
    expect_switches(1, 1);
    // No wait in between: the owner changes in the order of the commands.
    for (uint32_t i = 0; i < 10; ++i)
        use(*storage, i % 2 == 0 ? shared : host_space, Access::read_write);
    expect_switches(6, 6);
    EXPECT_EQ(read(*storage, host_space), pattern(size, 14));
}

TEST_F(LinkedMemory, MapAndUnmapSwitchTheOwner) {
    const auto storage = written(shared);
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    expect_switches(0, 1);
    ASSERT_TRUE(world.domain->map(world.on(1), *storage, StorageRect::of({0, size}), MapAccess::read_write));
    expect_switches(1, 1);
    storage->map_address()[7] = std::byte{200};
    ASSERT_TRUE(world.domain->unmap(world.on(1), *storage, StorageRect::of({0, size}), MapAccess::read_write));
    expect_switches(1, 1);
    use(*storage, shared, Access::read_write);
    expect_switches(1, 2);
    auto expected = pattern(size, 2);
    expected[7] = std::byte{201};
    EXPECT_EQ(read(*storage, shared), expected);
    EXPECT_EQ(moved(), 0u);
}

TEST_F(LinkedMemory, OnlyTheRangeInUseSwitches) {
    const auto storage = written(shared);
    const ByteRange part{1024, 2048};
    use(*storage, host_space, Access::read_write, part);
    expect_switches(1, 1);
    use(*storage, shared, Access::read_write, {4096, size});
    expect_switches(1, 1);
    use(*storage, shared, Access::read_write);
    expect_switches(1, 2);
    auto expected = pattern(size, 2);
    for (uint64_t i = part.begin; i < part.end; ++i)
        expected[i] = std::byte(static_cast<uint8_t>(expected[i]) + 1);
    for (uint64_t i = 4096; i < size; ++i)
        expected[i] = std::byte(static_cast<uint8_t>(expected[i]) + 1);
    EXPECT_EQ(read(*storage, host_space), expected);
}

// From a device that is not linked: map, one copy, unmap.
TEST_F(LinkedMemory, UnlinkedToLinkedIsOneCopy) {
    const auto storage = written(shared);
    use(*storage, apart, Access::read_write);
    expect_switches(1, 1);  // the bytes leave through the host
    EXPECT_EQ(moved(), size);
    world.domain->ledger().reset();
    use(*storage, shared, Access::read_write);
    expect_switches(1, 2);
    EXPECT_EQ(moved(), size);
    EXPECT_EQ(read(*storage, host_space), pattern(size, 3));
    use(*storage, shared, Access::read_write);
    use(*storage, apart, Access::overwrite);
    expect_switches(2, 3);
    world.domain->ledger().reset();
    use(*storage, shared, Access::read_write);
    expect_switches(3, 4);
    EXPECT_EQ(moved(), size);
    EXPECT_EQ(read(*storage, host_space), std::vector<std::byte>(size, std::byte{4}));
}

TEST_F(LinkedMemory, CopiesAndFillsSwitchToo) {
    const auto one = written(shared);
    const auto two = written(host_space);
    ASSERT_TRUE(
        world.domain->copy(world.on(1), *one, StorageRect::of({0, size / 2}), *two, StorageRect::of({size / 2, size})));
    expect_switches(0, 2);
    const std::byte five{5};
    ASSERT_TRUE(world.domain->fill(world.on(0), *two, {0, 100}, {&five, 1}));
    expect_switches(0, 2);
    auto expected = source;
    std::copy_n(source.begin(), size / 2, expected.begin() + size / 2);
    std::fill_n(expected.begin(), 100, five);
    EXPECT_EQ(read(*two, host_space), expected);
    EXPECT_EQ(moved(), 0u);
}

TEST_F(LinkedMemory, TheApplicationsPointerIsUsedWhenItIsSuitable) {
    alignas(128) std::byte memory[size + 128];
    std::copy(source.begin(), source.end(), memory);
    {
        const auto storage = world.storage(size, {.application_memory = memory});
        use(*storage, shared, Access::read_write);
        expect_switches(0, 1);
        EXPECT_TRUE(is_linked(*storage));
        EXPECT_EQ(blocks(host_space), 0u);
        EXPECT_EQ(moved(), 0u);
    }
    world.world.run();
    EXPECT_EQ(world.world.device_owned(DeviceAddress::of(memory), size), 0u);
    EXPECT_TRUE(std::equal(memory, memory + size, pattern(size, 2).begin()));
    // Not aligned: the host's block is linked, and the application's memory is copied.
    std::copy(source.begin(), source.end(), memory + 1);
    const auto storage = world.storage(size, {.application_memory = memory + 1});
    use(*storage, shared, Access::read_write);
    EXPECT_TRUE(is_linked(*storage));
    EXPECT_EQ(blocks(host_space), 1u);
    EXPECT_EQ(moved(), size);
    world.world.run();
}

// Commands in flight may need the storage when the application has released all handles.
TEST_F(LinkedMemory, TheApplicationsPointerStaysLinkedWhenItsHandleIsReleased) {
    alignas(128) std::byte memory[size];
    std::copy(source.begin(), source.end(), memory);
    {
        const auto storage = world.storage(size, {.application_memory = memory});
        storage->add_handle();
        use(*storage, shared, Access::read_write);
        storage->remove_handle();
        use(*storage, shared, Access::read_write);
        EXPECT_TRUE(storage->validate());
        EXPECT_TRUE(is_linked(*storage));
    }
    world.world.run();
}

TEST_F(LinkedMemory, PartsThatTheHostUsedFirstBecomeOneBlock) {
    MemoryWorld small{
        {.unified = SpaceSet{shared}, .domain = {.whole_up_to = ByteCount{0}, .whole_on_host_up_to = ByteCount{0}}}};
    constexpr uint64_t large = 64 * 1024;
    const auto storage = small.storage(large);
    const auto bytes = pattern(4096, 9);
    ASSERT_TRUE(small.domain->write(small.on(0), *storage, StorageRect::of({8192, 8192 + 4096}), bytes.data(), {}));
    std::vector<std::byte> seen;
    small.kernel(small.on(1), {{storage.get(), {8192, 12288}, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + 4096); });
    small.world.run();
    EXPECT_EQ(seen, bytes);
    EXPECT_TRUE(is_linked(*storage));
    EXPECT_TRUE(small.domain->is_reserved(*storage, {0, large}, host_space));
    EXPECT_EQ(small.space(1).activity().unmaps, 1u);
}

TEST_F(LinkedMemory, ASecondDeviceWithUnifiedMemoryIsNotLinked) {
    SpaceSet both{shared};
    both.insert(apart);
    MemoryWorld two{{.unified = both}};
    const auto storage = two.storage(size);
    for (uint32_t i = 0; i < 4; ++i)
        two.kernel(two.on(1 + i % 2), {{storage.get(), {0, size}, i == 0 ? Access::overwrite : Access::read_write}},
                   [i](const auto& at) {
                       for (uint64_t k = 0; k < size; ++k)
                           at[0][k] = i == 0 ? std::byte{1} : std::byte(static_cast<uint8_t>(at[0][k]) + 1);
                   });
    two.world.run();
    EXPECT_TRUE(is_linked(*storage, shared));
    EXPECT_FALSE(is_linked(*storage, apart));
    EXPECT_EQ(two.space(2).pool().statistics().live_blocks, 1u);
    EXPECT_EQ(two.space(2).activity().unmaps, 0u);
    std::vector<std::byte> bytes(size);
    ASSERT_TRUE(two.domain->read(two.on(0), *storage, StorageRect::of({0, size}), bytes.data(), {}));
    two.world.run();
    EXPECT_EQ(bytes, std::vector<std::byte>(size, std::byte{4}));
}

TEST_F(LinkedMemory, WithoutHostMemoryTheDevicesOwnIsUsed) {
    world.space(0).pool().set_limit(ByteCount{size / 2});
    const auto storage = world.storage(size);
    use(*storage, shared, Access::overwrite);
    world.world.run();
    EXPECT_FALSE(is_linked(*storage));
    EXPECT_EQ(blocks(shared), 1u);
    expect_switches(0, 0);
}

TEST_F(LinkedMemory, AReleasedBlockBelongsToTheHostAgain) {
    {
        const auto storage = world.storage(size);
        use(*storage, shared, Access::overwrite);
    }
    const auto next = world.storage(size);
    use(*next, host_space, Access::overwrite);  // the same block: fails if the device still owned it
    world.world.run();
    EXPECT_EQ(read(*next, host_space), std::vector<std::byte>(size, std::byte{3}));
}

// The host's block and the device's are one: where a transfer to one of them has failed, neither has the bytes.
TEST_F(LinkedMemory, AFailedTransferLeavesTheBytesInNeitherOfTheTwo) {
    for (const SpaceId target : {host_space, shared}) {
        const auto storage = written(shared);
        ASSERT_TRUE(is_linked(*storage));
        use(*storage, SpaceId{2}, Access::read_write);  // the newest bytes are there alone
        world.world.run();
        world.world.on_copy = [](FakeQueue& queue) { queue.fail_next(); };
        const auto failed = world.kernel(world.on(target.value), {{storage.get(), {0, size}, Access::read}});
        world.world.on_copy = {};
        world.world.run();
        EXPECT_NE(failed.queue->status(failed.value), Status::success);
        std::vector<std::byte> expected = source;
        for (std::byte& byte : expected)
            byte = std::byte(static_cast<uint8_t>(byte) + 1);
        EXPECT_EQ(read(*storage, target == shared ? host_space : shared), expected);
        EXPECT_EQ(read(*storage, target), expected);
        EXPECT_TRUE(storage->validate());
    }
}

TEST_F(LinkedMemory, LinkedMemoryIsNotEvicted) {
    const auto storage = written(shared);
    // Room for two; the address sanitizer's build needs some more bytes for each.
    world.space(0).pool().set_limit(ByteCount{2 * size + size / 2});
    std::vector<Ref<Storage>> more;
    for (int i = 0; i < 4; ++i) {
        more.push_back(world.storage(size));
        use(*more.back(), host_space, Access::overwrite);
    }
    EXPECT_TRUE(is_linked(*storage));
    EXPECT_EQ(read(*storage, shared), source);
}

// Random commands in random order of execution against one expected content.
TEST_F(LinkedMemory, RandomCommandsSeeEachOther) {
    auto& random = world.world.random();
    for (int run = 0; run < 50; ++run) {
        const auto storage = world.storage(size);
        std::vector<uint8_t> expected(size, 0);
        const std::byte zero{};
        ASSERT_TRUE(world.domain->fill(world.on(0), *storage, {0, size}, {&zero, 1}));
        driver::Timepoint last;
        for (int step = 0; step < 40; ++step) {
            const uint64_t begin = 128 * (random() % 60);
            const ByteRange range{begin, begin + 128 * (1 + random() % 4)};
            const auto space = static_cast<uint32_t>(random() % 3);
            last = world.kernel(world.on(space, {&last, last.queue ? size_t{1} : 0}),
                                {{storage.get(), range, Access::read_write}}, [range](const auto& at) {
                                    for (uint64_t i = 0; i < range.size(); ++i)
                                        at[0][i] = std::byte(static_cast<uint8_t>(at[0][i]) + 1);
                                });
            for (uint64_t i = range.begin; i < range.end; ++i)
                ++expected[i];
            world.world.step(random() % 4);
        }
        world.world.run();
        const auto bytes = read(*storage, SpaceId{static_cast<uint32_t>(random() % 3)});
        for (uint64_t i = 0; i < size; ++i)
            ASSERT_EQ(static_cast<uint8_t>(bytes[i]), expected[i]) << run << " " << i;
        ASSERT_TRUE(storage->validate());
    }
}

}  // namespace
}  // namespace polder::memory
