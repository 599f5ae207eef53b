// Bytes that the application has mapped while commands use bytes around them.
#include "support/memory_world.h"

namespace polder::memory {
namespace {

using test::MemoryWorld;

constexpr uint64_t KiB = 1024;
constexpr SpaceId device{1};

// The buffer was never written. The application has bytes between a rectangle's rows mapped when the rectangle is written on the
// device, whose memory is then needed for others.
TEST(MappedRows, BytesThatAreMappedBetweenTheRowsOfARectangleStayTheApplications) {
    constexpr uint64_t pitch = 128, row = 64, rows = 64, size = rows * pitch;
    for (const uint64_t mapped_rows : {1u, 40u}) {
        for (const MapAccess access : {MapAccess::write, MapAccess::read_write, MapAccess::write_invalidate}) {
            MemoryWorld world{{.separate_memories = 1, .memory_bytes = 64 * KiB}};
            const auto storage = world.storage(size);
            const StorageRect gaps{row, {pitch - row, mapped_rows, 1}, {pitch, 0}};
            auto pin = world.domain->reserve_map(*storage, gaps.span());
            ASSERT_TRUE(pin);
            const driver::Timepoint mapped = *world.domain->map(world.on(1), *storage, gaps, access);
            world.world.run();
            const std::vector<std::byte> source(row * rows, std::byte{3});
            const StorageRect rect{0, {row, rows, 1}, {pitch, 0}};
            ASSERT_TRUE(world.domain->write(world.on(1, {&mapped, 1}), *storage, rect, source.data(), {row, 0}));
            world.world.run();
            const auto for_each_mapped = [&](auto&& f) {
                for (uint64_t y = 0; y < mapped_rows; ++y)
                    for (uint64_t x = row; x < pitch; ++x)
                        f(y * pitch + x);
            };
            for_each_mapped([&](uint64_t at) { storage->map_address()[at] = std::byte{9}; });
            ASSERT_TRUE(world.domain->reserve(*world.storage(64 * KiB), device));
            world.world.run();
            EXPECT_FALSE(world.domain->is_reserved(*storage, {0, size}, device));
            for_each_mapped([&](uint64_t at) { ASSERT_EQ(storage->map_address()[at], std::byte{9}) << at; });
            ASSERT_TRUE(world.domain->unmap(world.on(1), *storage, gaps, access));
            pin = MapPin{};
            std::vector<std::byte> bytes(size);
            ASSERT_TRUE(world.domain->read(world.on(1), *storage, StorageRect::of({0, size}), bytes.data(), {}));
            world.world.run();
            for_each_mapped([&](uint64_t at) { ASSERT_EQ(bytes[at], std::byte{9}) << at; });
            for (uint64_t y = 0; y < rows; ++y)
                for (uint64_t x = 0; x < row; ++x)
                    ASSERT_EQ(bytes[y * pitch + x], std::byte{3}) << y << ' ' << x;
        }
    }
}

}  // namespace
}  // namespace polder::memory
