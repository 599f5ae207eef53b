// Memories that are too small for everything: which memory is evicted, and that all bytes stay right.
#include "space/space_impl.h"
#include "storage_impl.h"
#include "support/eviction_fixture.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <sys/mman.h>
#include <thread>

namespace polder::memory {
namespace {

using test::device;
using test::Eviction;
using test::KiB;
using test::MemoryWorld;
using test::pattern;
using test::Peers;

TEST_F(Eviction, FourTimesTheMemoryIsUsedInTurns) {
    for (const Peers peers : {Peers::none, Peers::all}) {
        for (const uint32_t memories : {1u, 2u, 3u}) {
            MemoryWorld world{{.separate_memories = memories, .peers = peers, .memory_bytes = 64 * KiB}};
            std::vector<Ref<Storage>> storages;
            for (uint8_t i = 0; i < 16 * memories; ++i)
                storages.push_back(written(world, 16 * KiB, i, 1 + i % memories));
            for (uint32_t pass = 0; pass < 3; ++pass) {
                for (uint32_t i = 0; i < storages.size(); ++i) {
                    const uint32_t space = 1 + (i + pass) % memories;
                    world.kernel(world.on(space), {{storages[i].get(), {0, 16 * KiB}, Access::read_write}},
                                 [](const auto& at) {
                                     for (uint64_t b = 0; b < 16 * KiB; ++b)
                                         at[0][b] = std::byte(static_cast<uint8_t>(at[0][b]) + 1);
                                 });
                    ASSERT_LE(live(world, space), 64 * KiB);
                    world.world.step(world.world.random()() % 4);
                }
                world.world.run();  // as an application that waits for each pass
            }
            for (uint32_t i = 0; i < storages.size(); ++i) {
                auto expected = pattern(16 * KiB, static_cast<uint8_t>(i + 3));
                ASSERT_EQ(read(world, *storages[i]), expected) << "storage " << i;
                ASSERT_TRUE(storages[i]->validate());
            }
        }
    }
}

// No thread waits: evictions are submitted behind the kernels that still use the memory.
TEST_F(Eviction, NothingIsWaitedFor) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    std::vector<Ref<Storage>> storages;
    for (int i = 0; i < 16; ++i) {
        storages.push_back(world.storage(16 * KiB));
        world.kernel(world.on(1), {{storages.back().get(), {0, 16 * KiB}, Access::overwrite}},
                     [i](const auto& at) { std::fill_n(at[0], 16 * KiB, std::byte(i)); });
    }
    EXPECT_EQ(world.world.operations_executed(), 0u);
    world.world.run();
    for (int i = 0; i < 16; ++i)
        EXPECT_EQ(read(world, *storages[static_cast<size_t>(i)]), std::vector<std::byte>(16 * KiB, std::byte(i)));
}

TEST_F(Eviction, WhatIsHeldElsewhereIsDroppedFirst) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    const auto alone = written(world, 16 * KiB, 1);
    const auto shared = written(world, 16 * KiB, 2, 0);
    use(world, *shared);
    const auto stale = written(world, 16 * KiB, 3);
    use(world, *stale, Access::read_write, 0);
    const auto other = written(world, 16 * KiB, 4);
    world.world.run();
    world.domain->ledger().reset();
    const auto one = written(world, 16 * KiB, 5);
    const auto two = written(world, 16 * KiB, 6);
    EXPECT_TRUE(has_memory(world, *alone));
    EXPECT_FALSE(has_memory(world, *shared));
    EXPECT_FALSE(has_memory(world, *stale));
    EXPECT_EQ(world.domain->ledger().moved_bytes(), 32 * KiB);  // the two writes themselves
    const auto three = written(world, 16 * KiB, 7);
    EXPECT_EQ(world.domain->ledger().moved_bytes(), 64 * KiB);
    EXPECT_FALSE(has_memory(world, *alone) && has_memory(world, *other));
    EXPECT_EQ(read(world, *alone), pattern(16 * KiB, 1));
    EXPECT_EQ(read(world, *stale), pattern(16 * KiB, 3));
    EXPECT_EQ(read(world, *other), pattern(16 * KiB, 4));
}

TEST_F(Eviction, LeastRecentlyUsedGoesFirst) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    std::vector<Ref<Storage>> storages;
    for (uint8_t i = 0; i < 5; ++i)  // from the fifth on, uses are noted
        storages.push_back(written(world, 16 * KiB, i));
    for (const size_t i : {2u, 4u, 1u})
        use(world, *storages[i], Access::read_write);
    const auto next = written(world, 16 * KiB, 9);
    EXPECT_FALSE(has_memory(world, *storages[3]));
    const auto last = written(world, 16 * KiB, 10);
    EXPECT_FALSE(has_memory(world, *storages[2]));
    EXPECT_TRUE(has_memory(world, *storages[4]));
    EXPECT_TRUE(has_memory(world, *storages[1]));
    world.world.run();
}

// The memory that commands which are held back will use is known.
TEST_F(Eviction, TheFurthestKnownUseGoesFirst) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    std::vector<Ref<Storage>> storages;
    for (uint8_t i = 0; i < 4; ++i)
        storages.push_back(written(world, 16 * KiB, i));
    std::deque<Announcement> held;
    for (const size_t i : {1u, 0u, 3u})
        held.emplace_back(*world.domain, std::vector<Use>{{storages[i].get(), {0, 16 * KiB}}}, device);
    const auto one = written(world, 16 * KiB, 7);
    EXPECT_FALSE(has_memory(world, *storages[2]));  // no known command uses it
    held.emplace_back(*world.domain, std::vector<Use>{{one.get(), {0, 16 * KiB}}}, device);
    const auto two = written(world, 16 * KiB, 8);
    EXPECT_FALSE(has_memory(world, *one));
    held.emplace_back(*world.domain, std::vector<Use>{{two.get(), {0, 16 * KiB}}}, device);
    held.pop_back();  // submitted
    const auto three = written(world, 16 * KiB, 9);
    EXPECT_FALSE(has_memory(world, *two));
    held.emplace_back(*world.domain, std::vector<Use>{{three.get(), {0, 16 * KiB}}}, device);
    held.pop_front();
    EXPECT_TRUE(has_memory(world, *storages[0]) && has_memory(world, *storages[1]) && has_memory(world, *storages[3]));
    held.clear();  // before the storages that they name
    world.world.run();
}

TEST_F(Eviction, CommandThatCannotFitEvictsNothing) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    const auto kept = written(world, 16 * KiB, 1);
    const Ref<Storage> large[] = {world.storage(40 * KiB), world.storage(40 * KiB)};
    const Use both[] = {{large[0].get(), {0, 40 * KiB}}, {large[1].get(), {0, 40 * KiB}}};
    const auto refused = world.domain->reserve(both, device);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status(), Status::mem_object_allocation_failure);
    EXPECT_NE(std::string(refused.error().detail()).find("out of memory in space 1"), std::string::npos);
    EXPECT_TRUE(has_memory(world, *kept));
    EXPECT_EQ(live(world, 1), 16 * KiB);
    ASSERT_TRUE(world.domain->reserve({&both[0], 1}, device));
    ASSERT_TRUE(world.domain->reserve({&both[1], 1}, device));
    EXPECT_FALSE(has_memory(world, *large[0]));
    EXPECT_EQ(read(world, *kept), pattern(16 * KiB, 1));
}

TEST_F(Eviction, ACommandKeepsItsOwnMemory) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    std::vector<Ref<Storage>> storages;
    for (uint8_t i = 0; i < 8; ++i)
        storages.push_back(written(world, 16 * KiB, i));
    for (size_t i = 0; i < 32; ++i) {
        std::vector<Use> uses;
        for (size_t k = 0; k < 4; ++k)
            uses.push_back({storages[(i + k * (1 + i % 3)) % 8].get(), {0, 16 * KiB}, Access::read_write});
        world.kernel(world.on(1), uses);
        for (const Use& use : uses)
            ASSERT_TRUE(has_memory(world, *use.storage)) << i;
    }
    world.world.run();
    for (uint8_t i = 0; i < 8; ++i)
        EXPECT_EQ(read(world, *storages[i]), pattern(16 * KiB, i));
}

TEST_F(Eviction, VictimsMayBeInAnotherContext) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    Space* spaces[] = {&world.space(0), &world.space(1), &world.space(2)};
    const std::unique_ptr<Domain> other = Domain::create(spaces);
    const auto theirs = pattern(48 * KiB, 77);
    {
        const auto storage = Storage::create(*other, ByteCount{48 * KiB}, {}).value();
        ASSERT_TRUE(other->write(world.on(1), *storage, StorageRect::of({0, 48 * KiB}), theirs.data(), {}));
        const auto mine = written(world, 48 * KiB, 1);
        EXPECT_FALSE(other->is_reserved(*storage, {0, 1}, device));
        std::vector<std::byte> seen(48 * KiB);
        ASSERT_TRUE(other->read(world.on(1), *storage, StorageRect::of({0, 48 * KiB}), seen.data(), {}));
        world.world.run();
        EXPECT_EQ(seen, theirs);
        EXPECT_EQ(read(world, *mine), pattern(48 * KiB, 1));
    }
    world.world.run();
}

// Two contexts with buffers of 16 KiB each share a memory that has room for four.
class EvictionByTwoContexts : public ::testing::Test {
protected:
    struct Context {
        Domain* domain = nullptr;
        std::vector<Ref<Storage>> storages;
    };
    EvictionByTwoContexts() {
        Space* spaces[] = {&world_.space(0), &world_.space(1), &world_.space(2)};
        other_ = Domain::create(spaces);
        one.domain = world_.domain.get();
        another.domain = other_.get();
        for (Context* context : {&one, &another})
            for (int i = 0; i < 6; ++i)
                context->storages.push_back(Storage::create(*context->domain, ByteCount{16 * KiB}, {}).value());
    }
    ~EvictionByTwoContexts() override {
        world_.world.run();
        for (Context* context : {&one, &another})
            context->storages.clear();
        world_.world.run();
    }
    void use(Context& context, size_t index) {
        const Use use{context.storages[index].get(), {0, 16 * KiB}, Access::read_write};
        const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress>) {
            return world_.queue(1).submit({waits}, [] {});
        };
        ASSERT_TRUE(context.domain->reserve({&use, 1}, device, &world_.queue(1)));
        ASSERT_TRUE(context.domain->launch(world_.on(1), {&use, 1}, submit));
        world_.world.run();
    }
    // Which of its storages have memory on the device, as their numbers.
    static std::vector<size_t> resident(const Context& context) {
        std::vector<size_t> numbers;
        for (size_t i = 0; i < context.storages.size(); ++i)
            if (context.domain->is_reserved(*context.storages[i], {0, 16 * KiB}, device))
                numbers.push_back(i);
        return numbers;
    }
    // Both have half of the memory, and have asked for it.
    void divide() {
        for (const size_t i : {0u, 1u, 2u, 3u, 4u})
            use(one, i);
        use(another, 0);
        use(another, 1);
        ASSERT_EQ(resident(one).size(), 2u);
        ASSERT_EQ(resident(another), (std::vector<size_t>{0, 1}));
    }

private:
    MemoryWorld world_{{.memory_bytes = 64 * KiB}};
    std::unique_ptr<Domain> other_;

protected:
    Context one, another;
};

// The other context evicts its own memory, as long as this one counts as asking.
TEST_F(EvictionByTwoContexts, NeitherLosesItsShareToTheOther) {
    divide();
    for (size_t i = 0; i < 5; ++i) {
        use(one, i % 6);
        EXPECT_EQ(resident(another), (std::vector<size_t>{0, 1})) << i;
    }
    for (size_t i = 2; i < 7; ++i) {
        const std::vector<size_t> before = resident(one);
        use(another, i % 6);
        EXPECT_EQ(resident(one), before) << i;
    }
}

// Although the other context's memory was used last.
TEST_F(EvictionByTwoContexts, AContextBelowItsShareGetsTheExcessOfTheOther) {
    for (const size_t i : {0u, 1u, 2u, 3u, 4u})
        use(one, i);
    use(another, 0);
    for (const size_t i : resident(one))
        use(one, i);
    use(another, 1);
    EXPECT_EQ(resident(another), (std::vector<size_t>{0, 1}));
    EXPECT_EQ(resident(one).size(), 2u);
}

TEST_F(EvictionByTwoContexts, AContextThatAsksNoMoreHasNoShare) {
    divide();
    for (size_t i = 0; i < 24; ++i)
        use(one, i % 6);
    EXPECT_EQ(resident(one).size(), 4u);
}

TEST_F(Eviction, PartsOfOneStorageTakeTurns) {
    MemoryWorld world{{.memory_bytes = 256 * KiB}};
    const auto storage = world.storage(1024 * KiB);
    const auto bytes = pattern(1024 * KiB, 5);
    for (int pass = 0; pass < 2; ++pass)
        for (uint64_t i = 0; i < 16; ++i) {
            const ByteRange part = ByteRange::at(i * 64 * KiB, ByteCount{64 * KiB});
            if (pass == 0) {
                ASSERT_TRUE(
                    world.domain->write(world.on(1), *storage, StorageRect::of(part), bytes.data() + part.begin, {}));
            } else {
                world.kernel(world.on(1), {{storage.get(), part, Access::read_write}});
            }
            ASSERT_LE(live(world, 1), 256 * KiB);
        }
    std::vector<std::byte> seen(bytes.size());
    ASSERT_TRUE(world.domain->read(world.on(1), *storage, StorageRect::of({0, bytes.size()}), seen.data(), {}));
    world.world.run();
    EXPECT_EQ(seen, bytes);
    EXPECT_TRUE(storage->validate());
}

// Half of a replica blocks the place of a larger one, which only fits without it.
TEST_F(Eviction, APartMakesRoomForTheLargerOneThatReplacesIt) {
    MemoryWorld world{{.memory_bytes = 256 * KiB}};
    const auto storage = world.storage(1024 * KiB);
    const auto bytes = pattern(160 * KiB, 5);
    ASSERT_TRUE(world.domain->write(world.on(1), *storage, StorageRect::of({0, 160 * KiB}), bytes.data(), {}));
    std::vector<std::byte> seen;
    world.kernel(world.on(1), {{storage.get(), {0, 240 * KiB}, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + 160 * KiB); });
    world.world.run();
    EXPECT_EQ(seen, bytes);
}

TEST_F(Eviction, HostMemoryIsLimitedToo) {
    MemoryWorld world{{.separate_memories = 2, .peers = Peers::all, .memory_bytes = 64 * KiB}};
    world.space(0).pool().set_limit(ByteCount{64 * KiB});
    std::vector<Ref<Storage>> storages;
    for (uint8_t i = 0; i < 10; ++i)  // 160 KiB in 192
        storages.push_back(written(world, 16 * KiB, i));
    for (uint32_t round = 0; round < 40; ++round) {
        use(world, *storages[(round * 7) % 10], Access::read_write, 1 + round % 2);
        world.world.step(world.world.random()() % 6);
    }
    for (uint8_t i = 0; i < 10; ++i)
        ASSERT_EQ(read(world, *storages[i]), pattern(16 * KiB, i)) << int{i};
    // More than all memories together.
    bool failed = false;
    for (uint8_t i = 0; i < 4; ++i) {
        const auto more = world.storage(16 * KiB);
        const std::byte one{1};
        const auto result = world.domain->fill(world.on(1), *more, {0, 16 * KiB}, {&one, 1});
        failed = failed || !result;
        storages.push_back(more);
    }
    EXPECT_TRUE(failed);
    for (uint8_t i = 0; i < 10; ++i)
        ASSERT_EQ(read(world, *storages[i]), pattern(16 * KiB, i)) << int{i};
}

TEST_F(Eviction, MappedBytesStayWhereTheyAre) {
    MemoryWorld world{{.separate_memories = 1, .memory_bytes = 256 * KiB}};
    const auto mapped = written(world, 32 * KiB, 1, 0);
    const auto free = written(world, 32 * KiB, 2, 0);
    auto pin = world.domain->reserve_map(*mapped);
    ASSERT_TRUE(pin);
    std::byte* const address = mapped->map_address();
    world.space(0).pool().set_limit(
        ByteCount{64 * KiB});  // with room for what the address sanitizer has behind a block
    const auto next = written(world, 32 * KiB, 3, 0);
    EXPECT_TRUE(has_memory(world, *mapped, host_space));
    EXPECT_FALSE(has_memory(world, *free, host_space));
    EXPECT_EQ(mapped->map_address(), address);
    EXPECT_FALSE(world.domain->reserve(*world.storage(60 * KiB), host_space));
    pin = MapPin{};
    EXPECT_TRUE(world.domain->reserve(*world.storage(60 * KiB), host_space));
    EXPECT_EQ(read(world, *mapped), pattern(32 * KiB, 1));
    EXPECT_EQ(read(world, *free), pattern(32 * KiB, 2));
}

TEST_F(Eviction, PinnedMemoryStays) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    const auto pinned = world.storage(32 * KiB);
    ASSERT_TRUE(world.domain->pin(*pinned, device, Domain::Contents::unwritten));
    for (uint8_t i = 0; i < 4; ++i) {
        const auto other = written(world, 32 * KiB, i);
        EXPECT_TRUE(has_memory(world, *pinned));
    }
    EXPECT_FALSE(world.domain->reserve(*world.storage(48 * KiB), device));
    world.world.run();
}

// Commands in flight keep a storage whose last handle was released. Its bytes are not written back, so no place is made for them.
TEST_F(Eviction, ReleasedStoragesGetNoMemoryElsewhere) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    std::vector<Ref<Storage>> released;
    for (uint8_t i = 0; i < 4; ++i) {
        released.push_back(written(world, 16 * KiB, i));
        released.back()->add_handle();
        released.back()->remove_handle();
    }
    world.world.run();
    const uint64_t allocations = world.space(0).pool().statistics().allocations;
    const Ref<Storage> next = world.storage(16 * KiB);
    const Result<void> reserved = world.domain->reserve(*next, device, nullptr);
    EXPECT_FALSE(reserved);
    EXPECT_EQ(world.space(0).pool().statistics().allocations, allocations);
    released.clear();
    EXPECT_TRUE(world.domain->reserve(*next, device, nullptr));
}

// Each command that makes room looks at few replicas on average, however many there are: one search serves many commands.
TEST_F(Eviction, SearchesDoNotGrowWithTheNumberOfReplicas) {
    constexpr uint64_t size = 128;
    constexpr uint64_t most_per_use = 64;
    const auto examined_per_use = [&](uint64_t replicas) {
        MemoryWorld world{{.separate_memories = 1, .memory_bytes = replicas * size}};
        std::vector<Ref<Storage>> storages;
        for (uint64_t i = 0; i < 2 * replicas; ++i) {
            storages.push_back(world.storage(size));
            use(world, *storages.back(), Access::overwrite);
        }
        for (const Ref<Storage>& storage : storages)
            use(world, *storage, Access::read_write);
        world.world.run();
        for (const Ref<Storage>& storage : storages)
            EXPECT_TRUE(storage->validate());
        const SpaceActivity activity = world.space(1).activity();
        EXPECT_GE(activity.evicted.value, 3 * replicas * size);
        return activity.examined / (4 * replicas);
    };
    EXPECT_LE(examined_per_use(1024), most_per_use);
    EXPECT_LE(examined_per_use(4096), most_per_use);
}

// A planned victim that was used since stays. A storage that is destroyed or loses its memory meanwhile is no victim.
TEST_F(Eviction, PlannedVictimsAreCheckedAgain) {
    constexpr uint64_t size = 128;
    constexpr size_t replicas = 1024;
    MemoryWorld world{{.separate_memories = 1, .memory_bytes = replicas * size}};
    std::vector<Ref<Storage>> storages;
    for (size_t i = 0; i < replicas; ++i)
        storages.push_back(written(world, size, static_cast<uint8_t>(i)));
    const auto first = written(world, size, 1);  // memory is short from now on
    EXPECT_FALSE(has_memory(world, *storages[0]));
    const uint64_t examined = world.space(1).activity().examined;
    use(world, *storages[1]);
    storages[2] = {};
    world.world.run();
    const auto second = written(world, size, 2);  // where the released one was
    EXPECT_TRUE(has_memory(world, *storages[3]));
    const auto third = written(world, size, 3);
    EXPECT_TRUE(has_memory(world, *storages[1]));
    EXPECT_FALSE(has_memory(world, *storages[3]));
    EXPECT_TRUE(has_memory(world, *storages[4]));
    EXPECT_LE(world.space(1).activity().examined - examined, 8u);
    for (const size_t i : {0u, 1u, 3u, 4u})
        EXPECT_EQ(read(world, *storages[i]), pattern(size, static_cast<uint8_t>(i)));
}

// A search for victims does not find memory that another thread has leased and not yet given to its storage.
TEST_F(Eviction, MemoryOnItsWayToAStorageIsWaitedFor) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    SpaceImpl& memory = static_cast<SpaceImpl&>(world.space(1));
    const auto leased = memory.pool().allocate(ByteCount{64 * KiB}, block_alignment);
    ASSERT_TRUE(leased);
    memory.changes().add(1);
    std::thread other([&] {
        while (!memory.turns().requested())
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        memory.pool().free(*leased, {});
        memory.changes().add(-1);
    });
    const auto storage = written(world, 16 * KiB, 1);
    other.join();
    EXPECT_EQ(read(world, *storage), pattern(16 * KiB, 1));
}

}  // namespace
}  // namespace polder::memory
