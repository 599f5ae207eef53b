// What commands that are held back will use: the same results as a plain list, in a number of steps that grows with the commands only.
#include "announced.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace polder::memory {
namespace {

constexpr ByteRange all{0, 4096};

TEST(Announced, AgreesWithAPlainList) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random{seed};
        Announced announced;
        std::vector<Announced::Use> model;
        uint64_t last = 0;
        for (int step = 0; step < 300; ++step) {
            const uint64_t kind = random() % 8;
            if (kind < 4) {
                // Two threads may come in the other order, and a command may use several ranges.
                last += 1 + random() % 2;
                const uint64_t number = kind == 0 && last > 3 ? last - 3 : last;
                const uint64_t begin = random() % 60;
                const Announced::Use use{
                    number, SpaceId{static_cast<uint32_t>(random() % 3)}, {begin, begin + 1 + random() % 8}};
                announced.add(use);
                model.push_back(use);
            } else if (kind < 7 && !model.empty()) {
                const bool is_first = random() % 2 == 0;
                const uint64_t number = is_first ? std::ranges::min(model, {}, &Announced::Use::number).number
                                                 : model[random() % model.size()].number;
                announced.withdraw(number);
                std::erase_if(model, [&](const Announced::Use& use) { return use.number == number; });
            } else {
                announced.withdraw(last + 100);  // was never announced
            }
            ASSERT_EQ(announced.size(), model.size());
            for (uint32_t space = 0; space < 3; ++space) {
                const ByteRange range{random() % 60, 64};
                uint64_t expected = ~uint64_t{0};
                for (const Announced::Use& use : model)
                    if (use.space == SpaceId{space} && use.range.overlaps(range))
                        expected = std::min(expected, use.number);
                ASSERT_EQ(announced.next_use(SpaceId{space}, range), expected) << "seed " << seed << " step " << step;
            }
        }
    }
}

enum class Order { as_announced, reversed, any };

uint64_t steps_of(uint64_t commands, Order order) {
    Announced announced;
    std::vector<uint64_t> numbers;
    for (uint64_t number = 1; number <= commands; ++number) {
        announced.add({number, SpaceId{1}, all});
        numbers.push_back(number);
    }
    if (order == Order::reversed)
        std::ranges::reverse(numbers);
    if (order == Order::any)
        std::ranges::shuffle(numbers, std::mt19937_64{5});
    for (const uint64_t number : numbers)
        announced.withdraw(number);
    EXPECT_EQ(announced.size(), 0u);
    return announced.steps();
}

TEST(Announced, EachCommandIsWithdrawnInAFewSteps) {
    for (const Order order : {Order::as_announced, Order::reversed, Order::any})
        for (const uint64_t commands : {1000u, 100'000u})
            EXPECT_LE(steps_of(commands, order), 8 * commands);
}

TEST(Announced, ASearchLooksAtABoundedNumberOfCommands) {
    Announced announced;
    for (uint64_t number = 1; number <= 100'000; ++number)
        announced.add({number, SpaceId{1}, {0, 64}});
    const uint64_t before = announced.steps();
    EXPECT_EQ(announced.next_use(SpaceId{1}, all), 1u);
    EXPECT_LE(announced.steps(), before + 1);
    EXPECT_EQ(announced.next_use(SpaceId{2}, all), ~uint64_t{0});
    EXPECT_EQ(announced.next_use(SpaceId{1}, {64, 128}), ~uint64_t{0});
    EXPECT_LE(announced.steps(), before + 1 + 2 * Announced::looked_at);
}

}  // namespace
}  // namespace polder::memory
