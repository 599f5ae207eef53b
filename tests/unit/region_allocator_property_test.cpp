// Random steps on regions of every kind, checked after each step against the plain model.
#include "region_model.h"

#include <gtest/gtest.h>
#include <random>

namespace polder {
namespace {

struct Sizes {
    uint64_t small_max;
    uint64_t large_max;
    uint64_t alignment_log2_max;
};

struct Walk {
    RegionAllocator::Region region;
    Sizes sizes;
    uint32_t steps;
};

void walk(const Walk& plan, uint64_t seed) {
    test::RegionModel model{plan.region};
    std::mt19937_64 random{seed};
    const auto below = [&](uint64_t bound) { return random() % bound; };
    for (uint32_t step = 0; step < plan.steps; ++step) {
        // Phases of filling and of emptying, so that the region is often full and often nearly free.
        const bool filling = (step / 200) % 2 == 0;
        if (below(10) < (filling ? 7u : 3u)) {
            const uint64_t size = below(1 + (below(4) == 0 ? plan.sizes.large_max : plan.sizes.small_max));
            const Alignment alignment{uint64_t{1} << (below(3) == 0 ? below(plan.sizes.alignment_log2_max + 1) : 0)};
            ASSERT_TRUE(model.allocate(ByteCount{size}, alignment)) << "seed " << seed << " step " << step;
        } else {
            ASSERT_TRUE(model.free_nth(below(1u << 30)));
        }
        ASSERT_TRUE(model.agrees()) << "seed " << seed << " step " << step;
    }
    while (model.live() > 0)
        ASSERT_TRUE(model.free_nth(below(1u << 30)));
    ASSERT_TRUE(model.agrees());
}

TEST(RegionAllocatorProperty, AgreesWithThePlainModel_SmallCrowdedRegion) {
    for (uint64_t seed = 0; seed < 20; ++seed)
        walk({{DeviceAddress{0}, ByteCount{64 * 1024}, Alignment{64}}, {1024, 16 * 1024, 12}, 1000}, seed);
}

TEST(RegionAllocatorProperty, AgreesWithThePlainModel_OddBaseAndByteGranularity) {
    for (uint64_t seed = 0; seed < 20; ++seed)
        walk({{DeviceAddress{12345 + seed}, ByteCount{9999}, Alignment{1}}, {60, 3000, 14}, 1000}, seed);
}

TEST(RegionAllocatorProperty, AgreesWithThePlainModel_BaseNotAlignedToTheGranularity) {
    for (uint64_t seed = 0; seed < 20; ++seed)
        walk(
            {{DeviceAddress{(seed << 32) + 77 * seed}, ByteCount{1u << 20}, Alignment{256}}, {5000, 200'000, 20}, 1000},
            seed);
}

TEST(RegionAllocatorProperty, AgreesWithThePlainModel_HugeRegion) {
    for (uint64_t seed = 0; seed < 10; ++seed)
        walk({{DeviceAddress{1}, ByteCount{UINT64_MAX}, Alignment{4096}},
              {uint64_t{1} << 40, uint64_t{1} << 62, 63},
              1000},
             seed);
}

} // namespace
} // namespace polder
