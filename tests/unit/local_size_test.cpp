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
            ASSERT_LE(product(local), 4096u);
        }
}

TEST(LocalSize, GroupsAreWideInTheDimensionOfTheLanes) {
    for (const unsigned lanes : {0U, 1U, 2U}) {
        LocalSizeRules its = rules();
        its.lane_dimension = lanes;
        Size3 expected{1, 1, 1};
        expected[lanes] = 256;
        EXPECT_EQ(choose_local_size({1024, 1024, 1024}, its), expected);
        Size3 narrow{1024, 1024, 1024};
        narrow[lanes] = 16;
        Size3 local = choose_local_size(narrow, its);
        EXPECT_EQ(local[lanes], 16u);
        EXPECT_EQ(product(local), 256u);
        its.shape = LocalSizeRules::Shape::unseen;
        expected[lanes] = 1024;
        EXPECT_EQ(choose_local_size({1000003, 1000003, 1000003}, its), expected);
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

TEST(LocalSize, PrimeRangesThatFitOneGroupBecomeOne) {
    EXPECT_EQ(choose_local_size({1009, 1, 1}, rules()), (Size3{1009, 1, 1}));
    EXPECT_EQ(choose_local_size({1009, 1009, 1}, rules()), (Size3{1009, 1, 1}));
    // 4 * 1009: groups of 4 fill no vector, 1009 is the next divisor.
    EXPECT_EQ(choose_local_size({4036, 1, 1}, rules()), (Size3{1009, 1, 1}));
}

TEST(LocalSize, RangesWithoutGoodDivisorsGetWholeVectorsWhereKernelsDoNotSeeGroups) {
    using enum LocalSizeRules::Shape;
    EXPECT_EQ(choose_local_size({1000003, 1, 1}, rules(unseen))[0], 1024u);
    // 37 * 100003: 37 is no multiple of the vector width; 8 * 100003: groups of 8 are needlessly small.
    EXPECT_EQ(choose_local_size({37 * 100003, 1, 1}, rules(any))[0], 37u);
    EXPECT_EQ(choose_local_size({37 * 100003, 1, 1}, rules(unseen))[0], 1024u);
    EXPECT_EQ(choose_local_size({8 * 100003, 1, 1}, rules(unseen))[0], 1024u);
    // Sizes with good divisors have no rest.
    EXPECT_EQ(192 * 1000 % choose_local_size({192 * 1000, 1, 1}, rules(unseen))[0], 0u);
    EXPECT_EQ(choose_local_size({5, 1, 1}, rules(unseen))[0], 5u);
}

// Beginning a group takes as long as some vectors, but there should be many groups where work-items take different times.
TEST(LocalSize, LargeRangesHaveLargeGroupsWhereKernelsDoNotSeeThem) {
    using enum LocalSizeRules::Shape;
    EXPECT_EQ(choose_local_size({1 << 20, 1, 1}, rules(unseen))[0], 1024u);
    EXPECT_EQ(choose_local_size({1 << 17, 1, 1}, rules(unseen))[0], 512u);
    EXPECT_EQ(choose_local_size({1 << 15, 1, 1}, rules(unseen))[0], 256u);
    EXPECT_EQ(choose_local_size({1 << 20, 1, 1}, rules(any))[0], 256u);
}

TEST(LocalSize, PlanesAreWideInXAndFillTheGroupInY) {
    using enum LocalSizeRules::Shape;
    EXPECT_EQ(choose_local_size({1024, 1024, 1}, rules()), (Size3{256, 1, 1}));
    EXPECT_EQ(choose_local_size({32, 1024, 1}, rules()), (Size3{32, 8, 1}));
    EXPECT_EQ(choose_local_size({32, 1021, 1}, rules()), (Size3{32, 1, 1}));
    EXPECT_EQ(choose_local_size({32, 1021, 1}, rules(any)), (Size3{32, 8, 1}));
    EXPECT_EQ(choose_local_size({8, 8, 1021}, rules(any)), (Size3{8, 8, 4}));
}

TEST(LocalSize, AllShapesKeepTheLimitsAndLeaveWorkForEveryUnit) {
    using enum LocalSizeRules::Shape;
    for (const LocalSizeRules::Shape shape : {uniform, any, unseen})
        for (uint64_t x = 1; x < 3000; x += 7)
            for (const uint64_t y : {1u, 13u, 256u}) {
                const Size3 local = choose_local_size({x, y, 5}, rules(shape));
                ASSERT_LE(product(local), 4096u);
                ASSERT_LE(local[0], x);
                ASSERT_LE(local[1], y);
                if (shape != uniform && x * y * 5 >= 4 * 256) {
                    ASSERT_GE((x + local[0] - 1) / local[0] * ((y + local[1] - 1) / local[1]) *
                                  ((5 + local[2] - 1) / local[2]),
                              4u);
                }
            }
}

TEST(LocalSize, LimitsOfTheDeviceHold) {
    LocalSizeRules small = rules();
    small.group_max = 2;
    small.item_max = {2, 1, 1};
    const Size3 local = choose_local_size({64, 64, 64}, small);
    EXPECT_LE(product(local), 2u);
    EXPECT_LE(local[1], 1u);
}

}  // namespace
}  // namespace polder::runtime
