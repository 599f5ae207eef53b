// runtime::AddressMap: case by case, and against a model of every address.
#include <runtime/address_map.h>

#include <array>
#include <gtest/gtest.h>
#include <random>
#include <thread>
#include <vector>

namespace polder::runtime {
namespace {

Ref<const Allocation> allocation(uint64_t address, uint64_t size) {
    return Ref<const Allocation>::adopt(new Allocation(
        {.kind = Allocation::Kind::svm, .address = address, .size = size, .space = host_space}, nullptr));
}

TEST(AddressMap, FindsFirstAndLastByteAndNothingBesides) {
    AddressMap map;
    EXPECT_TRUE(map.is_empty());
    EXPECT_FALSE(map.find(uint64_t{0}));
    const auto only = allocation(1000, 10);
    ASSERT_TRUE(map.insert(only));
    EXPECT_FALSE(map.is_empty());
    EXPECT_FALSE(map.find(uint64_t{999}));
    EXPECT_EQ(map.find(uint64_t{1000}), only);
    EXPECT_EQ(map.find(uint64_t{1009}), only);
    EXPECT_FALSE(map.find(uint64_t{1010}));
    EXPECT_EQ(map.find_any(0, 1001), only);
    EXPECT_EQ(map.find_any(1009, 5000), only);
    EXPECT_FALSE(map.find_any(0, 1000));
    EXPECT_FALSE(map.find_any(1010, 5000));
    EXPECT_FALSE(map.find_any(1005, 1005));
}

TEST(AddressMap, NeighboursTouchAndOverlapsAreRefused) {
    AddressMap map;
    ASSERT_TRUE(map.insert(allocation(100, 100)));
    EXPECT_TRUE(map.insert(allocation(200, 50)));
    EXPECT_TRUE(map.insert(allocation(50, 50)));
    EXPECT_FALSE(map.insert(allocation(199, 1)));
    EXPECT_FALSE(map.insert(allocation(249, 10)));
    EXPECT_FALSE(map.insert(allocation(10, 41)));
    EXPECT_FALSE(map.insert(allocation(0, 1000)));
    EXPECT_EQ(map.find(uint64_t{200})->address(), 200u);
}

TEST(AddressMap, RemovesOnlyByTheFirstAddress) {
    AddressMap map;
    const auto removed = allocation(64, 64);
    ASSERT_TRUE(map.insert(removed));
    EXPECT_FALSE(map.remove(65));
    EXPECT_EQ(map.remove(64), removed);
    EXPECT_FALSE(map.remove(64));
    EXPECT_FALSE(map.find(uint64_t{64}));
    EXPECT_TRUE(map.is_empty());
    EXPECT_TRUE(map.insert(allocation(0, 128)));
}

TEST(AddressMap, RandomChangesAgreeWithAModelOfEveryAddress) {
    constexpr uint64_t addresses = 256;
    for (uint32_t seed = 1; seed <= 50; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](uint64_t limit) { return random() % limit; };
        AddressMap map;
        std::array<const Allocation*, addresses> model{};
        for (int step = 0; step < 400; ++step) {
            const uint64_t begin = below(addresses), size = 1 + below(std::min<uint64_t>(24, addresses - begin));
            if (below(3) != 0) {
                const auto made = allocation(begin, size);
                bool is_free = true;
                for (uint64_t at = begin; at < begin + size; ++at)
                    is_free = is_free && !model[at];
                ASSERT_EQ(map.insert(made), is_free);
                for (uint64_t at = begin; is_free && at < begin + size; ++at)
                    model[at] = made.get();
            } else {
                const Allocation* const there = model[begin];
                const bool is_first = there && there->address() == begin;
                const auto removed = map.remove(begin);
                ASSERT_EQ(removed.get(), is_first ? there : nullptr);
                for (uint64_t at = 0; is_first && at < addresses; ++at)
                    if (model[at] == there)
                        model[at] = nullptr;
            }
            const uint64_t from = below(addresses), to = from + 1 + below(addresses - from);
            ASSERT_EQ(map.find(from).get(), model[from]);
            bool any = false;
            for (uint64_t at = from; at < to; ++at)
                any = any || model[at];
            const auto found = map.find_any(from, to);
            ASSERT_EQ(found.get() != nullptr, any);
            ASSERT_TRUE(!found || (found->address() < to && found->end() > from));
        }
        std::vector<const Allocation*> in_order, expected;
        map.for_each([&](const Allocation& each) { in_order.push_back(&each); });
        for (const Allocation* each : model)
            if (each && (expected.empty() || expected.back() != each))
                expected.push_back(each);
        ASSERT_EQ(in_order, expected) << "seed " << seed;
    }
}

TEST(AddressMap, ThreadsFindWhatOthersDoNotRemove) {
    AddressMap map;
    ASSERT_TRUE(map.insert(allocation(1 << 20, 4096)));
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 4; ++thread)
        threads.emplace_back([&map, thread] {
            for (uint64_t i = 0; i < 2000; ++i) {
                const uint64_t own = 4096 * (1 + thread);
                ASSERT_TRUE(map.insert(allocation(own, 4096)));
                EXPECT_TRUE(map.find(own + i % 4096));
                EXPECT_TRUE(map.find((1u << 20) + i % 4096));
                EXPECT_TRUE(map.remove(own));
            }
        });
    for (std::thread& thread : threads)
        thread.join();
}

}  // namespace
}  // namespace polder::runtime
