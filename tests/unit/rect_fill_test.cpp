// Rectangles are filled by few operations, which fill exactly their rows.
#include "support/memory_world.h"
#include "support/stub_queue.h"

#include <memory/rect_fill.h>

#include <cstring>
#include <random>
#include <storage_impl.h>

namespace polder::memory {
namespace {

using test::pattern;

// Executes each operation when it is submitted, in host memory, and counts them.
class CountingQueue final : public test::StubQueue {
public:
    driver::Timepoint fill(const driver::FillOperation& operation, const driver::Submission& submission) override {
        for (uint64_t at = 0; at < operation.size; at += operation.pattern.size())
            std::memcpy(operation.address.host() + at, operation.pattern.data(), operation.pattern.size());
        return count(submission);
    }
    driver::Timepoint copy(const driver::CopyOperation& operation, const driver::Submission& submission) override {
        const auto row = [](const driver::CopyOperation::End& end, uint64_t y, uint64_t z) {
            return end.address.host() + y * end.layout.row_pitch + z * end.layout.slice_pitch;
        };
        for (uint64_t z = 0; z < operation.shape.slices; ++z)
            for (uint64_t y = 0; y < operation.shape.rows; ++y)
                std::memcpy(row(operation.to, y, z), row(operation.from, y, z), operation.shape.row_bytes);
        return count(submission);
    }
    uint64_t operations = 0;

private:
    driver::Timepoint count(const driver::Submission& submission) {
        // So a failure of what the fill waits for, or of a part, reaches the last part.
        EXPECT_EQ(submission.waits.size(), 1u);
        if (submission.waits.size() == 1) {
            EXPECT_EQ(submission.waits[0].queue, this);
            EXPECT_EQ(submission.waits[0].value, operations);
        }
        return {this, ++operations};
    }
};

// How many operations fill the rectangle; checks each byte.
uint64_t filled(const driver::RectShape& shape, const driver::RectLayout& layout, size_t pattern_bytes) {
    const auto bytes = pattern(pattern_bytes, 3);
    const StorageRect rect{64, shape, layout};
    std::vector<std::byte> memory(rect.span().end + 64), expected(memory.size());
    for (uint64_t z = 0; z < shape.slices; ++z)
        for (uint64_t y = 0; y < shape.rows; ++y)
            for (uint64_t x = 0; x < shape.row_bytes; ++x)
                expected[rect.offset + y * layout.row_pitch + z * layout.slice_pitch + x] = bytes[x % pattern_bytes];
    CountingQueue queue;
    const driver::Timepoint before{&queue, 0};
    driver::Timepoint done;
    submit_rect_fill(queue, DeviceAddress::of(memory.data()).plus(rect.offset), shape, layout, bytes,
                     {{&before, 1}, nullptr}, done);
    EXPECT_TRUE(memory == expected) << shape.row_bytes << " x " << shape.rows << " x " << shape.slices;
    EXPECT_EQ(done.value, queue.operations);
    return queue.operations;
}

TEST(RectFill, OperationsGrowWithTheLogarithmOfTheRows) {
    EXPECT_EQ(filled({64, 1, 1}, {}, 16), 1u);
    EXPECT_LE(filled({64, 2000, 1}, {128, 0}, 16), 12u);
    EXPECT_LE(filled({16, 100, 30}, {64, 6400}, 4), 14u);
    EXPECT_LE(filled({1024, 1024, 1}, {1040, 0}, 8), 22u);  // 1 MiB, in blocks of 64 KiB
    EXPECT_EQ(filled({uint64_t{1} << 19, 3, 1}, {uint64_t{1} << 20, 0}, 8), 3u);  // long rows are filled, not copied
}

TEST(RectFill, RandomRectanglesHaveTheirBytesAndNoOthers) {
    std::mt19937 random(7);
    const auto up_to = [&](uint64_t most) { return 1 + random() % most; };
    for (int i = 0; i < 300; ++i) {
        const size_t pattern_bytes = size_t{1} << random() % 5;
        const driver::RectShape shape{pattern_bytes * up_to(40), up_to(40), up_to(12)};
        const uint64_t row_pitch = shape.row_bytes + random() % 20;
        const uint64_t slice_pitch = row_pitch * shape.rows + random() % 50;
        filled(shape, {row_pitch, slice_pitch}, pattern_bytes);
    }
}

// The residency: the same rules as for writes of rectangles.
TEST(RectFill, OnlyTheRowsAreNewElsewhere) {
    constexpr uint64_t size = 1024;
    test::MemoryWorld world{{}};
    const auto storage = world.storage(size);
    std::vector<std::byte> expected = pattern(size, 5);
    driver::Timepoint done =
        *world.domain->write(world.on(1), *storage, StorageRect::of({0, size}), expected.data(), {});
    done = world.kernel(world.on(2, {&done, 1}), {{storage.get(), {0, size}, Access::read}});
    world.world.run();
    world.moved();
    const StorageRect rows{8, {8, 24, 1}, {32, 0}};
    const auto bytes = pattern(4, 9);
    done = *world.domain->fill_rect(world.on(1, {&done, 1}), *storage, rows, bytes);
    for (size_t y = 0; y < 24; ++y)
        for (size_t x = 0; x < 8; ++x)
            expected[8 + 32 * y + x] = bytes[x % 4];
    EXPECT_EQ(world.moved(), 0u);
    std::vector<std::byte> seen;
    world.kernel(world.on(2, {&done, 1}), {{storage.get(), {0, size}, Access::read}},
                 [&](const auto& there) { seen.assign(there[0], there[0] + size); });
    EXPECT_EQ(world.moved(), 24u * 8u);
    world.world.run();
    EXPECT_EQ(seen, expected);
}

TEST(RectFill, OneDevicesRowsAreOneRange) {
    constexpr uint64_t size = 1024;
    test::MemoryWorld world{{}};
    const auto storage = world.storage(size);
    const auto all = pattern(size, 5), bytes = pattern(4, 9);
    ASSERT_TRUE(world.domain->write(world.on(1), *storage, StorageRect::of({0, size}), all.data(), {}));
    world.world.run();
    ASSERT_TRUE(world.domain->fill_rect(world.on(1), *storage, {8, {8, 24, 1}, {32, 0}}, bytes));
    EXPECT_LE(static_cast<StorageImpl&>(*storage).residency().pieces(), 3u);
    world.world.run();
}

}  // namespace
}  // namespace polder::memory
