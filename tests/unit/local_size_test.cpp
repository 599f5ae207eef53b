#include <runtime/local_size.h>

#include <gtest/gtest.h>

namespace polder::runtime {
namespace {

LocalSizeRules rules(LocalSizeRules::Shape shape = LocalSizeRules::Shape::uniform) {
    return {
        .group_max = 4096, .item_max = {4096, 4096, 4096}, .preferred_multiple = 8, .compute_units = 4, .shape = shape};
}

uint64_t product(const Size3& size) { return size[0] * size[1] * size[2]; }

TEST(LocalSize, UniformSizesDivideTheGlobalSize) {
    for (uint64_t x = 1; x < 600; ++x)
        for (const uint64_t y : {1u, 7u, 64u}) {
            const Size3 global{x, y, 3};
            const Size3 local = choose_local_size(global, rules());
            for (size_t d = 0; d < 3; ++d) {
                ASSERT_GT(local[d], 0u);
                ASSERT_EQ(global[d] % local[d], 0u) << x << " x " << y;
            }
            ASSERT_LE(product(local), 256u);
        }
}

TEST(LocalSize, LargeRangesGetWholeVectors) {
    const Size3 local = choose_local_size({1u << 20, 1, 1}, rules());
    EXPECT_EQ(local, (Size3{256, 1, 1}));
}

TEST(LocalSize, SmallRangesLeaveWorkForEveryUnit) {
    const Size3 local = choose_local_size({1024, 1, 1}, rules());
    EXPECT_EQ(local[0] % 8, 0u);
    EXPECT_GE(1024 / local[0], 4u);
}

TEST(LocalSize, PrimeRangesGetWholeVectorsWhereGroupsMayDiffer) {
    EXPECT_EQ(choose_local_size({1000003, 1, 1}, rules())[0], 1u);
    EXPECT_EQ(choose_local_size({1000003, 1, 1}, rules(LocalSizeRules::Shape::any))[0], 256u);
}

TEST(LocalSize, LimitsOfTheDeviceHold) {
    LocalSizeRules small = rules();
    small.group_max = 2;
    small.item_max = {2, 1, 1};
    const Size3 local = choose_local_size({64, 64, 64}, small);
    EXPECT_LE(product(local), 2u);
    EXPECT_LE(local[1], 1u);
}

} // namespace
} // namespace polder::runtime
