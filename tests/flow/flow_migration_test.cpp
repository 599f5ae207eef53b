// Migrations that an application asks for: what moves ahead, and that no byte beside the migrated ones is lost.
#include "support/flow.h"

namespace polder::test {
namespace {

constexpr size_t first = 1, second = 2;  // devices
constexpr size_t count = 16384;
constexpr size_t bytes = count * sizeof(cl_int);

using FlowMigration = FlowTest;

TEST_F(FlowMigration, MovesAheadAndWithUndefinedContentNothing) {
    const OwnedMem buffer = make_buffer(bytes);
    write(buffer, numbers(count), queues[first]);
    moved();
    ASSERT_EQ(clEnqueueMigrateMemObjects(queues[second], 1, buffer.in(), 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), bytes);
    run(second, "add", count, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(moved(), 0u);
    ASSERT_EQ(
        clEnqueueMigrateMemObjects(queues[first], 1, buffer.in(), CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(moved(), bytes);
    ASSERT_EQ(clEnqueueMigrateMemObjects(queues[first], 1, buffer.in(), CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                         nullptr, nullptr),
              CL_SUCCESS);
    run(first, "set_every_second", count / 2, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(moved(), 0u);
}

TEST_F(FlowMigration, OfSubBuffersWithUndefinedContentKeepsTheBytesBetweenThem) {
    constexpr size_t part_bytes = 4096;
    constexpr size_t parts = 48;
    constexpr size_t numbers_of_part = part_bytes / sizeof(cl_int);
    const OwnedMem buffer = make_buffer(2 * parts * part_bytes);
    const std::vector<cl_int> before = numbers(2 * parts * numbers_of_part);
    write(buffer, before, queues[first]);
    std::vector<OwnedMem> owned;
    std::vector<cl_mem> list;
    for (size_t i = 0; i < parts; ++i) {
        owned.push_back(sub_buffer(buffer, 2 * i * part_bytes, part_bytes));
        list.push_back(owned.back());
    }
    ASSERT_EQ(clEnqueueMigrateMemObjects(queues[second], parts, list.data(), CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                         nullptr, nullptr),
              CL_SUCCESS);
    const std::vector<cl_int> after = read<cl_int>(buffer, before.size(), queues[first]);
    for (size_t i = 0; i < before.size(); ++i)
        if (i / numbers_of_part % 2 == 1) {
            ASSERT_EQ(after[i], before[i]) << i;
        }
}

} // namespace
} // namespace polder::test
