// Storages in memories that are too small for all of them.
#pragma once

#include "memory_world.h"

#include <deque>
#include <vector>

namespace polder::test {

inline constexpr uint64_t KiB = 1024;
inline constexpr SpaceId device{1};

class Eviction : public ::testing::Test {
protected:
    Ref<memory::Storage> written(MemoryWorld& world, uint64_t size, uint8_t first, uint32_t space = 1) {
        const Ref<memory::Storage> storage = world.storage(size);
        bytes_.push_back(pattern(size, first));
        EXPECT_TRUE(world.domain->write(world.on(space), *storage, memory::StorageRect::of({0, size}),
                                        bytes_.back().data(), {}));
        return storage;
    }
    static void use(MemoryWorld& world, memory::Storage& storage, Access access = Access::read, uint32_t space = 1) {
        world.kernel(world.on(space), {{&storage, {0, storage.size().value}, access}});
    }
    static std::vector<std::byte> read(MemoryWorld& world, memory::Storage& storage, uint32_t space = 1) {
        std::vector<std::byte> bytes(storage.size().value);
        EXPECT_TRUE(
            world.domain->read(world.on(space), storage, memory::StorageRect::of({0, bytes.size()}), bytes.data(), {}));
        world.world.run();
        return bytes;
    }
    static bool has_memory(MemoryWorld& world, memory::Storage& storage, SpaceId space = device) {
        return world.domain->is_reserved(storage, {0, storage.size().value}, space);
    }
    static uint64_t live(MemoryWorld& world, uint32_t space) {
        return world.space(space).pool().statistics().live.value;
    }

private:
    std::deque<std::vector<std::byte>> bytes_;
};

}  // namespace polder::test
