// Free memory that is enough but scattered: which replicas move, and that all bytes stay right.
#include "storage_impl.h"
#include "support/memory_world.h"

namespace polder::memory {
namespace {

using test::MemoryWorld;
using test::pattern;

constexpr uint64_t KiB = 1024;
constexpr SpaceId device{1};

// A memory of 64 KiB with storages of 16 KiB side by side: `a`, `b`, `c`, `d`. The tests release `a` and `c`.
class Compaction : public ::testing::Test {
protected:
    void SetUp() override {
        for (uint8_t i = 0; i < 4; ++i)
            storages.push_back(written(16 * KiB, i));
        world.world.run();
        world.domain->ledger().reset();
    }
    Ref<Storage> written(uint64_t size, uint8_t first) { return written_by(*world.domain, size, first); }
    Ref<Storage> written_by(Domain& domain, uint64_t size, uint8_t first) {
        const auto storage = Storage::create(domain, ByteCount{size}, {}).value();
        bytes_.push_back(pattern(size, first));
        EXPECT_TRUE(domain.write(world.on(1), *storage, StorageRect::of({0, size}), bytes_.back().data(), {}));
        return storage;
    }
    std::vector<std::byte> read(Storage& storage) {
        std::vector<std::byte> bytes(storage.size().value);
        EXPECT_TRUE(storage.domain().read(world.on(1), storage, StorageRect::of({0, bytes.size()}), bytes.data(), {}));
        world.world.run();
        return bytes;
    }
    static uint64_t address(Storage& storage) {
        const StorageGuard guard{storage};
        const auto found = static_cast<StorageImpl&>(storage).find(device, {0, 1});
        return found ? found->value : 0;
    }
    void release(std::initializer_list<size_t> which) {
        for (const size_t i : which)
            storages[i] = {};
    }
    [[nodiscard]] SpaceActivity activity() { return world.space(1).activity(); }
    [[nodiscard]] uint64_t gathered() { return world.domain->ledger().gathered_bytes(); }

    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    std::vector<Ref<Storage>> storages;

private:
    std::deque<std::vector<std::byte>> bytes_;
};

TEST_F(Compaction, OneReplicaMovesAndNothingLeavesTheMemory) {
    release({0, 2});
    const auto large = world.storage(32 * KiB);
    ASSERT_TRUE(world.domain->reserve(*large, device));
    EXPECT_NE(address(*storages[1]), 0u);
    EXPECT_NE(address(*storages[3]), 0u);
    EXPECT_EQ(gathered(), 16 * KiB);
    EXPECT_EQ(world.domain->ledger().moved_bytes(), 0u);
    EXPECT_EQ(activity().compactions, 1u);
    EXPECT_EQ(activity().compacted, ByteCount{16 * KiB});
    EXPECT_EQ(activity().evicted, ByteCount{0});
    const std::byte one{1};
    ASSERT_TRUE(world.domain->fill(world.on(1), *large, {0, 32 * KiB}, {&one, 1}));
    EXPECT_EQ(read(*storages[1]), pattern(16 * KiB, 1));
    EXPECT_EQ(read(*storages[3]), pattern(16 * KiB, 3));
    EXPECT_EQ(read(*large), std::vector<std::byte>(32 * KiB, one));
    EXPECT_TRUE(storages[1]->validate() && storages[3]->validate() && world.space(1).pool().validate());
}

// The new owner's commands wait on the device for the copy that moves the old replica.
TEST_F(Compaction, NoThreadWaits) {
    release({0, 2});
    const size_t before = world.world.operations_executed();
    const auto large = world.storage(32 * KiB);
    std::vector<std::byte> seen;
    world.kernel(world.on(1), {{large.get(), {0, 32 * KiB}, Access::overwrite}},
                 [](const auto& at) { std::fill_n(at[0], 32 * KiB, std::byte{9}); });
    world.kernel(world.on(1, {}, 1), {{storages[1].get(), {0, 16 * KiB}, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + 16 * KiB); });
    EXPECT_EQ(world.world.operations_executed(), before);
    world.world.run();
    EXPECT_EQ(seen, pattern(16 * KiB, 1));
    EXPECT_EQ(read(*large), std::vector<std::byte>(32 * KiB, std::byte{9}));
}

TEST_F(Compaction, WhatIsInFlightStays) {
    world.kernel(world.on(1), {{storages[1].get(), {0, 16 * KiB}, Access::read_write}});
    const uint64_t before = address(*storages[1]);
    release({0, 2});
    const auto large = world.storage(32 * KiB);
    ASSERT_TRUE(world.domain->reserve(*large, device));
    EXPECT_EQ(address(*storages[1]), before);
    EXPECT_EQ(gathered(), 16 * KiB) << "the other one has moved";
    world.world.run();
    EXPECT_EQ(read(*storages[1]), pattern(16 * KiB, 1));
    EXPECT_EQ(read(*storages[3]), pattern(16 * KiB, 3));
}

TEST_F(Compaction, WhereNothingMayMoveMemoryIsEvicted) {
    for (const size_t i : {1u, 3u})
        world.kernel(world.on(1), {{storages[i].get(), {0, 16 * KiB}, Access::read_write}});
    release({0, 2});
    const auto large = world.storage(32 * KiB);
    ASSERT_TRUE(world.domain->reserve(*large, device));
    EXPECT_EQ(gathered(), 0u);
    EXPECT_EQ(activity().compactions, 0u);
    EXPECT_EQ(activity().evicted, ByteCount{16 * KiB});
    EXPECT_EQ(activity().written_back, ByteCount{16 * KiB});
    EXPECT_EQ(read(*storages[1]), pattern(16 * KiB, 1));
    EXPECT_EQ(read(*storages[3]), pattern(16 * KiB, 3));
}

TEST_F(Compaction, PinnedMemoryStays) {
    for (const size_t i : {1u, 3u})
        ASSERT_TRUE(world.domain->pin(*storages[i], device, Domain::Contents::unwritten));
    const uint64_t before = address(*storages[1]);
    release({0, 2});
    EXPECT_FALSE(world.domain->reserve(*world.storage(32 * KiB), device));
    EXPECT_EQ(address(*storages[1]), before);
    EXPECT_EQ(gathered(), 0u);
}

TEST_F(Compaction, AMappedBufferMovesOnTheDeviceAlone) {
    auto pin = world.domain->reserve_map(*storages[1]);
    ASSERT_TRUE(pin);
    ASSERT_TRUE(world.domain->map(world.on(1), *storages[1], StorageRect::of({0, 16 * KiB}), MapAccess::read_write));
    world.world.run();
    std::byte* const mapped = storages[1]->map_address();
    mapped[5] = std::byte{77};
    world.kernel(world.on(1),
                 {{storages[3].get(), {0, 16 * KiB}, Access::read_write}});  // so that only the other may move
    release({0, 2});
    const auto large = world.storage(32 * KiB);
    ASSERT_TRUE(world.domain->reserve(*large, device));
    EXPECT_EQ(gathered(), 16 * KiB);
    EXPECT_EQ(storages[1]->map_address(), mapped);
    ASSERT_TRUE(world.domain->unmap(world.on(1), *storages[1], StorageRect::of({0, 16 * KiB}), MapAccess::read_write));
    auto expected = pattern(16 * KiB, 1);
    expected[5] = std::byte{77};
    EXPECT_EQ(read(*storages[1]), expected);
}

TEST_F(Compaction, ReplicasOfAnotherContextMove) {
    Space* spaces[] = {&world.space(0), &world.space(1), &world.space(2)};
    const std::unique_ptr<Domain> other = Domain::create(spaces);
    release({1, 2, 3});
    {
        // Their memory is behind the block that is released next.
        const auto theirs = written_by(*other, 16 * KiB, 50);
        const auto behind = written(16 * KiB, 4);
        world.world.run();
        world.domain->ledger().reset();
        release({0});
        ASSERT_NE(address(*theirs), 0u);
        const auto large = world.storage(32 * KiB);
        ASSERT_TRUE(world.domain->reserve(*large, device));
        EXPECT_EQ(activity().evicted, ByteCount{0});
        world.world.run();
        EXPECT_EQ(read(*theirs), pattern(16 * KiB, 50));
        EXPECT_EQ(read(*behind), pattern(16 * KiB, 4));
    }
    world.world.run();
}

// Storages of random sizes come and go, always as many bytes as the memory has at most. Where moving does not help, because a large one
// is between others, memory is evicted. No byte is lost.
TEST_F(Compaction, RandomSizesLoseNoByte) {
    release({0, 1, 2, 3});
    storages.clear();
    auto& random = world.world.random();
    std::vector<uint8_t> first;
    uint64_t used = 0;
    for (uint32_t round = 0; round < 300; ++round) {
        const uint64_t size = 128 * (1 + random() % 100);
        if (used + size <= 64 * KiB) {
            first.push_back(static_cast<uint8_t>(round));
            storages.push_back(written(size, first.back()));
            used += size;
        } else {
            const size_t victim = random() % storages.size();
            used -= storages[victim]->size().value;
            storages.erase(storages.begin() + static_cast<ptrdiff_t>(victim));
            first.erase(first.begin() + static_cast<ptrdiff_t>(victim));
        }
        world.world.run();
        ASSERT_TRUE(world.space(1).pool().validate());
    }
    EXPECT_GT(activity().compactions, 10u);
    for (size_t i = 0; i < storages.size(); ++i)
        ASSERT_EQ(read(*storages[i]), pattern(storages[i]->size().value, first[i])) << i;
}

}  // namespace
}  // namespace polder::memory
