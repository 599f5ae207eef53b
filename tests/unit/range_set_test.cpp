#include "allocation/range_set.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace polder::memory {
namespace {

TEST(RangeSet, AgreesWithOneFlagPerByte) {
    constexpr uint64_t bytes = 64;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        std::mt19937_64 random{seed};
        RangeSet set;
        std::vector<bool> model(bytes);
        for (int step = 0; step < 200; ++step) {
            uint64_t begin = random() % (bytes + 1), end = random() % (bytes + 1);
            if (begin > end)
                std::swap(begin, end);
            const bool inserts = random() % 2 == 0;
            uint64_t held = 0, missing = 0, size = 0;
            for (uint64_t i = begin; i < end; ++i)
                held += model[i] ? 1 : 0;
            set.for_each_missing({begin, end}, [&](ByteRange part) {
                missing += part.size();
                for (uint64_t i = part.begin; i < part.end; ++i)
                    EXPECT_FALSE(model[i]);
            });
            EXPECT_EQ(held + missing, end - begin);
            if (inserts)
                set.insert({begin, end});
            else
                EXPECT_EQ(set.erase({begin, end}), held);
            for (uint64_t i = begin; i < end; ++i)
                model[i] = inserts;
            for (const bool in : model)
                size += in ? 1 : 0;
            ASSERT_EQ(set.size_bytes(), size) << "seed " << seed << " step " << step;
        }
    }
}

} // namespace
} // namespace polder::memory
