// Buffers in the application's memory that are released while commands, maps and evictions use them: who owns the memory, and when.
#include "support/eviction_fixture.h"

#include <algorithm>

namespace polder::memory {
namespace {

using test::device;
using test::Eviction;
using test::KiB;
using test::MemoryWorld;
using test::pattern;

// The memory of an application behind a buffer (CL_MEM_USE_HOST_PTR); not aligned: it is a place of its own.
class ReleasedBuffer : public Eviction, public ::testing::WithParamInterface<uint64_t> {
protected:
    static constexpr uint64_t size = 32 * KiB;
    [[nodiscard]] std::byte* memory() { return memory_.data() + offset_; }
    [[nodiscard]] std::vector<std::byte> content() { return {memory(), memory() + size}; }
    Ref<Storage> buffer() {
        const Ref<Storage> storage = world.storage(size, {.application_memory = memory()});
        storage->add_handle();
        return storage;
    }
    void write_on_device(Storage& storage, uint8_t value) {
        world.kernel(world.on(1), {{&storage, {0, size}, Access::overwrite}},
                     [value](const auto& at) { std::fill_n(at[0], size, std::byte{value}); });
    }
    static std::vector<std::byte> all(uint8_t value) { return std::vector<std::byte>(size, std::byte{value}); }

private:
    std::vector<std::byte> memory_ = std::vector<std::byte>(size + 256);
    const uint64_t offset_ = (128 - reinterpret_cast<uintptr_t>(memory_.data()) % 128) % 128 + GetParam();

protected:
    MemoryWorld world{{.separate_memories = 2, .memory_bytes = 64 * KiB}};
};

TEST_P(ReleasedBuffer, KeepsItsMemoryWhileItIsMapped) {
    const Ref<Storage> storage = buffer();
    write_on_device(*storage, 2);
    world.world.run();
    auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    const StorageRect rect = StorageRect::of({0, size});
    ASSERT_TRUE(world.domain->map(world.on(1), *storage, rect, MapAccess::read_write));
    world.world.run();
    EXPECT_EQ(storage->map_address(), memory());
    EXPECT_EQ(content(), all(2));
    std::fill_n(memory(), size, std::byte{7});
    storage->remove_handle();
    ASSERT_TRUE(world.domain->unmap(world.on(1), *storage, rect, MapAccess::read_write));
    pin = MapPin{};
    EXPECT_EQ(read(world, *storage), all(7));
    EXPECT_TRUE(storage->validate());
}

TEST_P(ReleasedBuffer, IsMappedByACommandThatWasHeldBack) {
    const Ref<Storage> storage = buffer();
    write_on_device(*storage, 2);
    world.world.run();
    const Use use{storage.get(), {0, size}, Access::read};
    ASSERT_TRUE(world.domain->migrate(world.on(1), {&use, 1}, host_space, Domain::Content::kept));
    world.world.run();
    const auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    storage->remove_handle();
    ASSERT_TRUE(world.domain->map(world.on(1), *storage, StorageRect::of({0, size}), MapAccess::read));
    ASSERT_TRUE(world.domain->migrate(world.on(1), {&use, 1}, host_space, Domain::Content::kept));
    world.world.run();
    EXPECT_EQ(content(), all(2));
}

// When the map has ended, and the buffer must leave the device.
TEST_P(ReleasedBuffer, GoesToTheLibrarysMemory) {
    const Ref<Storage> storage = buffer();
    auto pin = world.domain->reserve_map(*storage);
    ASSERT_TRUE(pin);
    storage->remove_handle();
    pin = MapPin{};
    write_on_device(*storage, 3);
    world.world.run();
    std::fill_n(memory(), size, std::byte{99});
    const auto other = written(world, 48 * KiB, 1);
    world.world.run();
    EXPECT_FALSE(has_memory(world, *storage));
    EXPECT_EQ(content(), all(99));
    EXPECT_EQ(read(world, *storage), all(3));
    EXPECT_TRUE(storage->validate());
}

// The application waits for its command, but not in clReleaseMemObject.
TEST_P(ReleasedBuffer, DoesNotWaitForCommands) {
    const Ref<Storage> storage = buffer();
    write_on_device(*storage, 4);
    const Use use{storage.get(), {0, size}, Access::read};
    ASSERT_TRUE(world.domain->migrate(world.on(1), {&use, 1}, host_space, Domain::Content::kept));
    const size_t executed = world.world.operations_executed();
    storage->remove_handle();
    EXPECT_EQ(world.world.operations_executed(), executed);
    world.world.run();
    EXPECT_EQ(content(), all(4));
}

TEST_P(ReleasedBuffer, WaitsForEvictions) {
    const Ref<Storage> storage = buffer();
    write_on_device(*storage, 4);
    const auto other = written(world, 48 * KiB, 1);
    storage->remove_handle();
    EXPECT_EQ(content(), all(4));
    std::fill_n(memory(), size, std::byte{99});  // is of the application again
    world.world.run();
    EXPECT_EQ(content(), all(99));
}

TEST_P(ReleasedBuffer, WaitsForTransfersOfACommandThatFailed) {
    const Ref<Storage> storage = buffer();
    write_on_device(*storage, 4);
    world.kernel(world.on(2), {{storage.get(), {size / 2, size}, Access::overwrite}});
    world.world.run();
    world.devices[2]->refuse_queues();
    const Use use{storage.get(), {0, size}, Access::read};
    ASSERT_FALSE(world.domain->migrate(world.on(1), {&use, 1}, host_space, Domain::Content::kept));
    storage->remove_handle();
    std::fill_n(memory(), size, std::byte{99});
    world.world.run();
    EXPECT_EQ(content(), all(99));
}

INSTANTIATE_TEST_SUITE_P(Aligned, ReleasedBuffer, ::testing::Values(0, 1));

}  // namespace
}  // namespace polder::memory
