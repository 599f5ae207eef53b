// A world in which the device of space 1 shares the host's memory, and fails the test when one side uses what the other owns.
#pragma once

#include "memory_world.h"
#include "storage_impl.h"

#include <vector>

namespace polder::memory::test {

using polder::test::FakeQueue;
using polder::test::MemoryWorld;
using polder::test::pattern;

inline constexpr uint64_t size = 8192;
inline constexpr SpaceId shared{1};  // of the device with unified memory
inline constexpr SpaceId apart{2};

class LinkedMemory : public ::testing::Test {
protected:
    LinkedMemory() : world({.unified = SpaceSet{shared}}) {}

    void use(Storage& storage, SpaceId space, Access access, ByteRange range = {0, size}) {
        world.kernel(world.on(space.value), {{&storage, range, access}}, [access, range](const auto& at) {
            for (uint64_t i = 0; writes(access) && i < range.size(); ++i)
                at[0][i] = access == Access::overwrite ? std::byte{3} : std::byte(static_cast<uint8_t>(at[0][i]) + 1);
        });
    }
    std::vector<std::byte> read(Storage& storage, SpaceId space) {
        std::vector<std::byte> bytes(storage.size().value);
        EXPECT_TRUE(
            world.domain->read(world.on(space.value), storage, StorageRect::of({0, bytes.size()}), bytes.data(), {}));
        world.world.run();
        return bytes;
    }
    Ref<Storage> written(SpaceId space) {
        const auto storage = world.storage(size);
        EXPECT_TRUE(
            world.domain->write(world.on(space.value), *storage, StorageRect::of({0, size}), source.data(), {}));
        world.world.run();
        world.domain->ledger().reset();
        return storage;
    }
    static bool is_linked(Storage& storage, SpaceId space = shared) {
        const StorageGuard guard{storage};
        return static_cast<StorageImpl&>(storage).is_linked_to(space);
    }
    void expect_switches(uint64_t maps, uint64_t unmaps) {
        world.world.run();
        const SpaceActivity now = world.space(1).activity();
        EXPECT_EQ(now.maps, maps);
        EXPECT_EQ(now.unmaps, unmaps);
    }
    uint64_t blocks(SpaceId space) { return world.space(space.value).pool().statistics().live_blocks; }
    uint64_t moved() { return world.domain->ledger().moved_bytes(); }

    MemoryWorld world;
    const std::vector<std::byte> source = pattern(size, 1);
};

}  // namespace polder::memory::test
