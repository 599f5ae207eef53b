// Memory for the bytes in use alone: sub-buffers and maps of storages that no device has room for.
#include "allocation/sparse.h"
#include "residency/replicas.h"
#include "support/memory_world.h"

namespace polder::memory {
namespace {

using test::MemoryWorld;
using test::pattern;
using test::Peers;

constexpr uint64_t KiB = 1024;
constexpr uint64_t MiB = 1024 * KiB;
constexpr SpaceId device{1};

Use use(const Ref<Storage>& storage, ByteRange range, Access access) { return {storage.get(), range, access}; }

void write(MemoryWorld& world, uint32_t space, const Ref<Storage>& storage, ByteRange range,
           const std::vector<std::byte>& bytes) {
    ASSERT_TRUE(world.domain->write(world.on(space), *storage, StorageRect::of(range), bytes.data(), {}));
}

std::vector<std::byte> read(MemoryWorld& world, uint32_t space, const Ref<Storage>& storage, ByteRange range) {
    std::vector<std::byte> bytes(range.size());
    EXPECT_TRUE(world.domain->read(world.on(space), *storage, StorageRect::of(range), bytes.data(), {}));
    world.world.run();
    return bytes;
}

uint64_t live(MemoryWorld& world, uint32_t space) { return world.space(space).pool().statistics().live.value; }

// --- replicas by themselves ---

Replica replica(SpaceId space, ByteRange range, uint64_t base) {
    return {space, 0, range, DeviceAddress{base}, std::nullopt};
}

TEST(Replicas, RangeIsFoundWhereOneReplicaContainsIt) {
    Replicas replicas;
    replicas.make_room(20);
    for (uint64_t i = 0; i < 20; ++i)  // more than are searched in order
        replicas.insert(replica(SpaceId{static_cast<uint32_t>(1 + i % 2)}, {i / 2 * 100, i / 2 * 100 + 50}, i));
    for (uint64_t i = 0; i < 20; ++i) {
        const SpaceId space{static_cast<uint32_t>(1 + i % 2)};
        const uint64_t begin = i / 2 * 100;
        const Replica* const found = replicas.find(space, {begin + 10, begin + 50});
        ASSERT_NE(found, nullptr) << i;
        EXPECT_EQ(found->base.value, i);
        EXPECT_EQ(replicas.find(space, {begin + 10, begin + 51}), nullptr);
        EXPECT_EQ(replicas.find(space, {begin + 50, begin + 60}), nullptr);
        EXPECT_EQ(replicas.find(SpaceId{3}, {begin, begin + 1}), nullptr);
    }
    EXPECT_TRUE(replicas.validate());
    replicas.erase(SpaceId{2}, 300);
    EXPECT_EQ(replicas.find(SpaceId{2}, {300, 301}), nullptr);
    EXPECT_NE(replicas.find(SpaceId{1}, {300, 301}), nullptr);
}

TEST(Replicas, NeighboursAtOneBaseBecomeOne) {
    Replicas replicas;
    replicas.make_room(3);
    replicas.insert(replica(host_space, {0, 100}, 7));
    replicas.insert(replica(host_space, {200, 300}, 7));
    replicas.insert(replica(host_space, {100, 200}, 7));
    EXPECT_EQ(replicas.size(), 1u);
    EXPECT_NE(replicas.find(host_space, {0, 300}), nullptr);
}

TEST(Replicas, GrowthCoversWhatItOverlaps) {
    Replicas replicas;
    replicas.make_room(3);
    constexpr ByteCount all{10000};
    constexpr Alignment step{128};
    EXPECT_EQ(replicas.growth(device, {130, 200}, all, step)->range, (ByteRange{128, 256}));
    replicas.insert(replica(device, {0, 256}, 1));
    replicas.insert(replica(device, {512, 1024}, 2));
    EXPECT_FALSE(replicas.growth(device, {600, 1024}, all, step));
    EXPECT_EQ(replicas.growth(device, {256, 512}, all, step)->range, (ByteRange{256, 512}));  // touches both
    EXPECT_EQ(replicas.growth(device, {200, 600}, all, step)->range, (ByteRange{0, 1024}));
    EXPECT_EQ(replicas.growth(device, {9990, 10000}, all, step)->range, (ByteRange{9984, 10000}));
}

// A range that grows byte by byte: the bytes copied stay in proportion to its size.
TEST(Replicas, GrowingAgainAndAgainDoubles) {
    constexpr ByteCount all{1 << 20};
    for (const bool upwards : {true, false}) {
        Replicas replicas;
        replicas.make_room(1);
        uint64_t copied = 0;
        for (uint64_t size = 128; size <= all.value; size += 128) {
            const ByteRange range = upwards ? ByteRange{0, size} : ByteRange{all.value - size, all.value};
            const auto growth = replicas.growth(device, range, all, Alignment{128});
            if (!growth)
                continue;
            ASSERT_TRUE(growth->range.contains(range));
            if (!replicas.empty()) {
                copied += replicas.begin()->range.size();
                replicas.erase(device, replicas.begin()->range.begin);
            }
            replicas.insert({device, growth->growths, growth->range, {}, std::nullopt});
        }
        EXPECT_LE(copied, 2 * all.value);
    }
}

// --- in a domain ---

TEST(Partial, SubBuffersHaveMemoryForTheirBytesAlone) {
    MemoryWorld world{{.memory_bytes = MiB}};
    const auto storage = world.storage(8 * MiB);
    ASSERT_FALSE(world.domain->reserve(*storage, device));
    const ByteRange low{0, 256 * KiB}, high{4 * MiB, 4 * MiB + 256 * KiB};
    ASSERT_TRUE(world.domain->reserve(*storage, low, device));
    EXPECT_EQ(live(world, 1), 256 * KiB);
    ASSERT_TRUE(world.domain->reserve(*storage, high, device));
    EXPECT_EQ(live(world, 1), 512 * KiB);
    EXPECT_TRUE(world.domain->is_reserved(*storage, {100, 200}, device));
    EXPECT_FALSE(world.domain->is_reserved(*storage, {MiB, MiB + 1}, device));
    const auto one = pattern(256 * KiB, 1), other = pattern(256 * KiB, 77);
    write(world, 1, storage, low, one);
    write(world, 1, storage, high, other);
    EXPECT_EQ(live(world, 1), 512 * KiB);
    EXPECT_EQ(read(world, 1, storage, low), one);
    EXPECT_EQ(read(world, 1, storage, high), other);
    EXPECT_TRUE(storage->validate());
}

TEST(Partial, AUseOfTheWholeGathers) {
    MemoryWorld world{{.memory_bytes = 4 * MiB}};
    const auto storage = world.storage(MiB);
    const ByteRange low{0, 128 * KiB}, high{512 * KiB, 640 * KiB};
    const auto one = pattern(128 * KiB, 1), other = pattern(128 * KiB, 77);
    write(world, 1, storage, low, one);
    write(world, 1, storage, high, other);
    world.moved();
    std::vector<std::byte> seen;
    world.kernel(world.on(1), {use(storage, {0, MiB}, Access::read_write)},
                 [&](const auto& at) { seen.assign(at[0], at[0] + MiB); });
    EXPECT_EQ(world.domain->ledger().gathered_bytes(), 256 * KiB);
    EXPECT_EQ(world.moved(), 0u);
    world.world.run();
    EXPECT_TRUE(std::equal(one.begin(), one.end(), seen.begin()));
    EXPECT_TRUE(std::equal(other.begin(), other.end(), seen.begin() + 512 * KiB));
    world.space(1).pool().drain();
    EXPECT_EQ(live(world, 1), MiB);
    EXPECT_TRUE(storage->validate());
}

// The kernels on the parts are still running when the whole is asked for.
TEST(Partial, GatheringWaitsForWhatIsInFlightAndFreesAfterwards) {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        MemoryWorld world{{.seed = seed, .memory_bytes = 4 * MiB}};
        const auto storage = world.storage(MiB);
        const ByteRange low{0, 128 * KiB}, middle{64 * KiB, 256 * KiB};
        const auto fill = [](uint64_t size, std::byte value) {
            return [=](const auto& at) { std::fill_n(at[0], size, value); };
        };
        auto done = world.kernel(world.on(1), {use(storage, low, Access::overwrite)}, fill(low.size(), std::byte{1}));
        done = world.kernel(world.on(1, {&done, 1}, 1), {use(storage, middle, Access::overwrite)},
                            fill(middle.size(), std::byte{2}));
        world.world.step(world.world.random()() % 3);
        std::vector<std::byte> seen;
        world.kernel(world.on(1, {&done, 1}, 0), {use(storage, {0, 256 * KiB}, Access::read)},
                     [&](const auto& at) { seen.assign(at[0], at[0] + 256 * KiB); });
        EXPECT_EQ(world.space(1).pool().statistics().live_blocks, 1u);
        // Another storage uses the memory of the replaced part, after everything that used it.
        const auto next = world.storage(128 * KiB);
        world.kernel(world.on(1, {}, 1), {use(next, {0, 128 * KiB}, Access::overwrite)}, fill(128 * KiB, std::byte{9}));
        world.world.run();
        ASSERT_EQ(seen.size(), 256 * KiB);
        EXPECT_EQ(std::count(seen.begin(), seen.begin() + 64 * KiB, std::byte{1}), int64_t{64 * KiB});
        EXPECT_EQ(std::count(seen.begin() + 64 * KiB, seen.end(), std::byte{2}), int64_t{192 * KiB});
    }
}

TEST(Partial, BytesGoBetweenPartsOfDifferentShape) {
    for (const Peers peers : {Peers::none, Peers::all}) {
        MemoryWorld world{{.peers = peers, .memory_bytes = MiB}};
        const auto storage = world.storage(4 * MiB);
        const auto bytes = pattern(512 * KiB, 3);
        const ByteRange whole{MiB, MiB + 512 * KiB};
        for (uint64_t i = 0; i < 4; ++i) {  // four replicas on one device
            const ByteRange part = ByteRange::at(MiB + i * 128 * KiB, ByteCount{128 * KiB});
            ASSERT_TRUE(
                world.domain->write(world.on(1), *storage, StorageRect::of(part), bytes.data() + i * 128 * KiB, {}));
        }
        EXPECT_EQ(world.space(1).pool().statistics().live_blocks, 4u);
        world.moved();
        std::vector<std::byte> seen;
        world.kernel(world.on(2), {use(storage, whole, Access::read)},
                     [&](const auto& at) { seen.assign(at[0], at[0] + whole.size()); });
        EXPECT_EQ(world.moved(), 512 * KiB);
        EXPECT_EQ(read(world, 1, storage, whole), bytes);
        EXPECT_EQ(seen, bytes);
        ASSERT_TRUE(world.domain->reserve_map(*storage, whole));
        ASSERT_TRUE(world.domain->map(world.on(0), *storage, StorageRect::of(whole), MapAccess::read));
        world.world.run();
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), storage->map_address() + whole.begin));
        EXPECT_TRUE(storage->validate());
    }
}

TEST(Partial, MappingOneByteOfAHugeStorageCostsOnePage) {
    MemoryWorld world{{}};
    const uint64_t page = SparseMemory::page().value;
    world.space(0).pool().set_limit(ByteCount{16 * page});
    const auto storage = world.storage(uint64_t{16} << 30);
    ASSERT_TRUE(world.domain->reserve_map(*storage, {uint64_t{8} << 30, (uint64_t{8} << 30) + 1}));
    EXPECT_EQ(live(world, 0), page);
    storage->map_address()[uint64_t{8} << 30] = std::byte{7};
    // A part that overlaps it: the address stays, and the shared page is counted once.
    const std::byte* const address = storage->map_address();
    ASSERT_TRUE(world.domain->reserve_map(*storage, {(uint64_t{8} << 30) - 1, (uint64_t{8} << 30) + 2}));
    EXPECT_EQ(storage->map_address(), address);
    EXPECT_EQ(live(world, 0), 2 * page);
    // More than the limit allows fails and costs nothing.
    EXPECT_FALSE(world.domain->reserve_map(*storage, {0, 16 * page}));
    EXPECT_EQ(live(world, 0), 2 * page);
    EXPECT_TRUE(world.space(0).pool().validate());
}

TEST(Partial, PagesOfAReleasedStorageGoBackWhenItsCommandsAreComplete) {
    MemoryWorld world{{}};
    constexpr uint64_t size = 64 * MiB;
    std::vector<std::byte> seen(16);
    {
        const auto storage = world.storage(size);
        const std::byte one{1};
        ASSERT_TRUE(world.domain->fill(world.on(0), *storage, {size / 2, size / 2 + 16}, {&one, 1}));
        ASSERT_TRUE(
            world.domain->read(world.on(0), *storage, StorageRect::of({size / 2, size / 2 + 16}), seen.data(), {}));
    }
    EXPECT_EQ(live(world, 0), SparseMemory::page().value);
    world.world.run();
    EXPECT_EQ(seen, std::vector<std::byte>(16, std::byte{1}));
    const auto other = world.storage(size);
    ASSERT_TRUE(world.domain->reserve_map(*other, {0, 1}));
    EXPECT_EQ(live(world, 0), SparseMemory::page().value);
}

// Pages that the system gives anew are zero; those of a stretch that was kept have their old bytes.
TEST(Partial, AddressesOfAReleasedStorageAreUsedAgainUntilTheSpaceIsTrimmed) {
    MemoryWorld world{{}};
    const auto first_byte_of_a_new_storage = [&](uint64_t used) {
        const auto storage = world.storage(64 * MiB);
        EXPECT_TRUE(world.domain->reserve_map(*storage, {0, used}));
        return std::exchange(storage->map_address()[0], std::byte{7});
    };
    constexpr uint64_t much = MiB;
    EXPECT_EQ(first_byte_of_a_new_storage(1), std::byte{0});
    EXPECT_EQ(first_byte_of_a_new_storage(much), std::byte{7});
    // Too many pages of it were used.
    EXPECT_EQ(first_byte_of_a_new_storage(1), std::byte{0});
    EXPECT_EQ(live(world, 0), 0U);
    world.space(0).trim();
    EXPECT_EQ(first_byte_of_a_new_storage(1), std::byte{0});
    EXPECT_EQ(first_byte_of_a_new_storage(1), std::byte{7});
}

// The stretch of a storage whose first part is refused serves the next storage: neither its addresses nor its charge are lost.
TEST(Partial, AddressesOfARefusedFirstPartAreUsedAgain) {
    MemoryWorld world{{}};
    const uint64_t page = SparseMemory::page().value;
    constexpr uint64_t size = 64 * MiB;
    const std::byte* address = nullptr;
    {
        const auto storage = world.storage(size);
        ASSERT_TRUE(world.domain->reserve_map(*storage, {0, 1}));
        address = storage->map_address();
        storage->map_address()[0] = std::byte{7};
    }
    world.space(0).pool().set_limit(ByteCount{16 * page});
    const auto storage = world.storage(size);
    for (int i = 0; i < 20; ++i)  // more often than stretches are kept
        ASSERT_FALSE(world.domain->reserve_map(*storage, {0, 17 * page}));
    EXPECT_EQ(live(world, 0), 0U);
    ASSERT_TRUE(world.domain->reserve_map(*storage, {0, 16 * page}));
    EXPECT_EQ(storage->map_address(), address);
    EXPECT_EQ(storage->map_address()[0], std::byte{7});  // the same pages
    EXPECT_EQ(live(world, 0), 16 * page);
    EXPECT_TRUE(world.space(0).pool().validate());
}

TEST(Partial, CommandWithSeveralPartsOfOneStorageSeesThemInOneMemory) {
    MemoryWorld world{{.memory_bytes = 4 * MiB}};
    const auto storage = world.storage(8 * MiB);
    const ByteRange a{0, 512 * KiB}, b{256 * KiB, MiB}, c{4 * MiB, 5 * MiB};
    std::vector<std::byte*> seen;
    world.kernel(world.on(1),
                 {use(storage, b, Access::read_write), use(storage, c, Access::read), use(storage, a, Access::read)},
                 [&](const auto& at) { seen = at; });
    world.world.run();
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen[0] - seen[2], int64_t{256 * KiB});
    EXPECT_EQ(live(world, 1), 2 * MiB);
    EXPECT_EQ(world.domain->ledger().gathered_bytes(), 0u);
}

}  // namespace
}  // namespace polder::memory
