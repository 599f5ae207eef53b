// What is counted of stretches of host addresses that one storage leaves to the next: all pages that the system backs, whichever storage
// touched them.
#include "allocation/sparse.h"
#include "allocation/touched_pages.h"
#include "support/memory_world.h"

#include <memory/block_pool.h>

#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <sys/mman.h>
#include <thread>

namespace polder::memory {
namespace {

using test::MemoryWorld;

constexpr uint64_t MiB = uint64_t{1} << 20;
constexpr uint64_t size = 64 * MiB;

uint64_t page() { return SparseMemory::page().value; }
uint64_t live(MemoryWorld& world) { return world.space(0).pool().statistics().live.value; }

// Bytes of a stretch with pages behind them, as the system reports them.
uint64_t resident(std::byte* address) {
    std::vector<unsigned char> pages(size / page());
    EXPECT_EQ(mincore(address, size, pages.data()), 0);
    return page() * static_cast<uint64_t>(std::ranges::count_if(pages, [](unsigned char one) { return one & 1; }));
}

// A storage with one byte written in each of some pages.
// The pin keeps them in host memory.
struct Used {
    Ref<Storage> storage;
    std::byte* address = nullptr;
    std::optional<MapPin> pin{};
};
Used use_pages(MemoryWorld& world, uint64_t first, uint64_t count) {
    Used used{world.storage(size)};
    auto pin = world.domain->reserve_map(*used.storage, {first * page(), (first + count) * page()});
    if (!pin)
        return used;
    used.pin.emplace(std::move(*pin));
    used.address = used.storage->map_address();
    for (uint64_t i = first; i < first + count; ++i)
        used.address[i * page()] = std::byte{7};
    return used;
}

TEST(KeptStretches, EveryPageIsUsedSpareOrGivenBack) {
    MemoryWorld world{{}};
    std::byte* kept = nullptr;
    for (uint64_t round = 0; round < 100; ++round) {
        const uint64_t count = 1 + round % 9;
        const Used used = use_pages(world, 37 * round, count);
        ASSERT_NE(used.address, nullptr);
        ASSERT_TRUE(round == 0 || used.address == kept) << "round " << round;
        kept = used.address;
        ASSERT_EQ(live(world), count * page());
        ASSERT_EQ(world.space(0).budget().committed.value, count * page());
        ASSERT_EQ(world.space(0).budget().resident.value, resident(kept)) << "round " << round;
        ASSERT_LE(resident(kept), 64u << 10);
    }
    // The last one is kept: no storage has it, but it is memory of the process.
    EXPECT_EQ(live(world), 0u);
    EXPECT_GT(resident(kept), 0u);
    EXPECT_EQ(world.space(0).budget().resident.value, resident(kept));
    EXPECT_EQ(world.space(0).budget().committed.value, 0u);
    EXPECT_EQ(use_pages(world, 0, 1).address, kept) << "asking for figures left it in its place";
    world.space(0).trim();
    EXPECT_EQ(world.space(0).budget().resident.value, 0u);
}

TEST(KeptStretches, TheSamePartsAgainAreNotGivenBack) {
    MemoryWorld world{{}};
    for (int round = 0; round < 10; ++round) {
        const auto storage = world.storage(size);
        for (const uint64_t part : {0, 900, 70, 4000}) {
            ASSERT_TRUE(world.domain->reserve_map(*storage, {part * page(), (part + 2) * page()}));
            std::byte& first = storage->map_address()[part * page()];
            EXPECT_EQ(first, std::byte{round == 0 ? uint8_t{0} : uint8_t{7}}) << part;
            first = storage->map_address()[(part + 1) * page()] = std::byte{7};
        }
        EXPECT_EQ(live(world), 8 * page());
        EXPECT_EQ(world.space(0).budget().resident.value, resident(storage->map_address()));
    }
}

TEST(KeptStretches, PagesOfSeveralPartsAreUsedSpareOrGivenBack) {
    MemoryWorld world{{}};
    std::mt19937_64 random{1};
    for (int round = 0; round < 300; ++round) {
        const uint64_t first = random() % 200;
        const Used used = use_pages(world, first, 1 + random() % 4);
        ASSERT_NE(used.address, nullptr);
        for (uint64_t more = random() % 4; more > 0; --more) {
            const uint64_t at = first + random() % 90, count = 1 + random() % 6;
            ASSERT_TRUE(world.domain->reserve_map(*used.storage, {at * page(), (at + count) * page()}));
            for (uint64_t i = at; i < at + count; ++i)
                used.address[i * page()] = std::byte{7};
            ASSERT_EQ(world.space(0).budget().resident.value, resident(used.address)) << "round " << round;
        }
        ASSERT_EQ(world.space(0).budget().resident.value, resident(used.address)) << "round " << round;
        ASSERT_EQ(world.space(0).budget().committed.value, live(world));
        ASSERT_LE(resident(used.address), live(world) + (64u << 10));
    }
}

// Many storages at once, each with as many pages of an earlier one as there can be.
TEST(KeptStretches, SparePagesOfAllStoragesAreBounded) {
    MemoryWorld world{{}};
    for (int round = 0; round < 4; ++round) {
        std::vector<Used> earlier, next;
        for (uint64_t i = 0; i < 16; ++i)
            earlier.push_back(use_pages(world, 100 * (i + 16 * static_cast<uint64_t>(round)), 15));
        earlier.clear();
        uint64_t spare = 0;
        for (uint64_t i = 0; i < 16; ++i) {
            next.push_back(use_pages(world, 8000 + i, 1));
            spare += resident(next.back().address) - page();
        }
        EXPECT_EQ(live(world), 16 * page());
        EXPECT_EQ(spare, (uint64_t{256} << 10) / (15 * page()) * 15 * page()) << "whole lists of 15 pages that fit";
        EXPECT_EQ(world.space(0).budget().resident.value, live(world) + spare);
    }
}

// Storages that together touch far more than the limit never have more than it, and get all of it.
TEST(KeptStretches, StayWithinTheLimit) {
    MemoryWorld world{{}};
    world.space(0).pool().set_limit(ByteCount{20 * page()});
    std::mt19937_64 random{1};
    for (int round = 0; round < 300; ++round) {
        const uint64_t count = 1 + random() % 10;
        const Used one = use_pages(world, random() % (size / page() - count), count);
        const Used other = use_pages(world, random() % (size / page() - count), 20 - count);
        ASSERT_NE(one.address, nullptr) << "round " << round;
        ASSERT_NE(other.address, nullptr) << "round " << round;
        ASSERT_EQ(live(world), 20 * page()) << "round " << round;
        ASSERT_GE(world.space(0).budget().resident.value, resident(one.address) + resident(other.address));
        ASSERT_LE(resident(one.address) + resident(other.address), 20 * page() + (128u << 10)) << "round " << round;
        ASSERT_EQ(use_pages(world, 0, 21).address, nullptr) << "more than the limit";
    }
    EXPECT_EQ(live(world), 0u);
    EXPECT_TRUE(world.space(0).pool().validate());
}

// Pages that a storage has from an earlier one belong to it until they are given back.
TEST(KeptStretches, ARefusedFirstPartChangesNothing) {
    MemoryWorld world{{}};
    std::byte* const address = use_pages(world, 0, 10).address;
    world.space(0).pool().set_limit(ByteCount{12 * page()});
    EXPECT_EQ(use_pages(world, 100, 13).address, nullptr);
    EXPECT_EQ(resident(address), 10 * page());
    EXPECT_EQ(world.space(0).budget().resident.value, 10 * page());
    const Used next = use_pages(world, 4, 2);
    ASSERT_EQ(next.address, address);
    EXPECT_EQ(live(world), 2 * page());
    EXPECT_EQ(resident(address), 10 * page());
    EXPECT_EQ(world.space(0).budget().resident.value, 10 * page());
    ASSERT_TRUE(world.domain->reserve_map(*next.storage, {100 * page(), 110 * page()}));
    EXPECT_EQ(live(world), 12 * page());
    EXPECT_EQ(resident(address), 2 * page()) << "the list has no room for spare pages";
    EXPECT_EQ(next.address[4 * page()], std::byte{7});
    EXPECT_FALSE(world.domain->reserve_map(*next.storage, {200 * page(), 200 * page() + 1}));
}

// The second gap of a part is refused: the first one is taken back.
TEST(KeptStretches, RefusedPartWithGapsCostsNothing) {
    MemoryWorld world{{}};
    const Used used = use_pages(world, 4, 1);
    world.space(0).pool().set_limit(ByteCount{8 * page()});
    EXPECT_FALSE(world.domain->reserve_map(*used.storage, {0, 100 * page()}));
    EXPECT_EQ(live(world), page());
    ASSERT_TRUE(world.domain->reserve_map(*used.storage, {0, 8 * page()}));
    EXPECT_EQ(live(world), 8 * page());
}

// Two parts of one command: pages that the first one finds from an earlier storage are counted again when the second is refused.
TEST(KeptStretches, APartThatIsTakenBackLeavesNoPages) {
    MemoryWorld world{{}};
    std::byte* const address = use_pages(world, 0, 10).address;
    world.space(0).pool().set_limit(ByteCount{12 * page()});
    const auto storage = world.storage(size);
    const memory::Use uses[] = {{storage.get(), {0, 10 * page()}, Access::read_write},
                                {storage.get(), {50 * page(), 60 * page()}, Access::read_write}};
    EXPECT_FALSE(world.domain->reserve(uses, host_space, nullptr));
    EXPECT_EQ(live(world), 0u);
    EXPECT_EQ(resident(address), 0u);
    EXPECT_EQ(world.space(0).budget().resident.value, 0u);
}

// A command that uses all of a storage and a part of it: one block has both.
TEST(KeptStretches, APartOfWhatTheCommandUsesWholeCostsNothing) {
    MemoryWorld world{{}};
    const auto storage = world.storage(size);
    const memory::Use uses[] = {{storage.get(), {0, size}, Access::read_write},
                                {storage.get(), {50 * page(), 60 * page()}, Access::read_write}};
    ASSERT_TRUE(world.domain->reserve(uses, host_space, nullptr));
    // A block of the address sanitizer is longer by the bytes that catch accesses behind it.
    EXPECT_LT(live(world) - size, page());
    EXPECT_TRUE(storage->validate());
}

// Threads take stretches and keep them, while another one asks for figures and a fourth trims.
TEST(KeptStretches, FiguresAddUpWhileThreadsUseStretches) {
    BlockPool pool{std::make_unique<HostRegionSource>(), {}};
    SparseMemory sparse{pool};
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (uint64_t number = 0; number < 2; ++number)
        threads.emplace_back([&sparse, number] {
            std::mt19937_64 random{number};
            for (int i = 0; i < 3000; ++i) {
                auto stretch = sparse.reserve(ByteCount{(1 + random() % 3) * MiB});
                ASSERT_TRUE(stretch);
                const uint64_t first = random() % 100;
                ASSERT_TRUE(sparse.charge(**stretch, {first * page(), (first + 1 + random() % 8) * page()}));
                (*stretch)->address().plus(first * page()).host()[0] = std::byte{7};
                if (random() % 4 == 0)
                    sparse.discharge(**stretch, {first * page(), (first + 1) * page()});
                sparse.free(std::move(*stretch), {});
            }
        });
    threads.emplace_back([&] {
        while (!is_over) {
            EXPECT_LE(sparse.uncounted_bytes().value, uint64_t{1280} << 10);
            std::this_thread::yield();
        }
    });
    threads.emplace_back([&] {
        while (!is_over) {
            sparse.trim();
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    });
    threads[0].join();
    threads[1].join();
    is_over = true;
    threads[2].join();
    threads[3].join();
    EXPECT_EQ(pool.statistics().live, ByteCount{0});
    sparse.trim();
    EXPECT_EQ(sparse.uncounted_bytes(), ByteCount{0}) << "no page counts as spare for ever";
}

// Storages use, take back and leave random pages; two sets of numbers say what must be listed.
TEST(TouchedPages, ListsLikeSetsOfNumbers) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
        std::mt19937_64 random{seed};
        TouchedPages pages;
        std::set<uint64_t> used, spare;
        const auto drop = [&](TouchedPages::Range part) {
            for (uint64_t page = part.begin; page < part.end; ++page)
                ASSERT_EQ(spare.erase(page), 1u) << "seed " << seed << ": page " << page << " was not spare";
        };
        for (int step = 0; step < 300; ++step) {
            const uint64_t begin = random() % 40;
            const TouchedPages::Range range{begin, begin + 1 + random() % 6};
            const auto next = used.lower_bound(range.begin);
            if (next == used.end() || *next >= range.end) {
                std::set<uint64_t> reused;
                for (uint64_t page = range.begin; page < range.end; ++page)
                    if (spare.contains(page))
                        reused.insert(page);
                std::erase_if(spare, [&](uint64_t page) { return range.contains(page); });
                const bool had_room = used.size() + spare.size() + range.size() <= TouchedPages::listed_max;
                const size_t spare_before = spare.size();
                pages.use(range, drop);
                ASSERT_TRUE(!had_room || !pages.are_listed() || spare.size() == spare_before) << "dropped for nothing";
                if (random() % 3 == 0)
                    pages.remove(range);
                else
                    for (uint64_t page = range.begin; page < range.end; ++page)
                        used.insert(page);
            }
            ASSERT_EQ(pages.spare(), spare.size()) << "seed " << seed;
            ASSERT_TRUE(pages.are_listed() ? pages.size() == used.size() + spare.size()
                                           : pages.size() < used.size() + spare.size())
                << "seed " << seed;
            ASSERT_TRUE(pages.are_listed() || used.size() > 10) << seed;  // a part is listed whole or not at all
            if (random() % 8 == 0) {
                pages.drop_spare(drop);
                ASSERT_TRUE(spare.empty()) << "seed " << seed;
            } else if (random() % 8 == 0) {
                if (pages.are_listed()) {
                    pages.begin_next_storage();
                    spare.insert(used.begin(), used.end());
                } else {
                    pages = {};
                    spare.clear();
                }
                used.clear();
            }
        }
    }
}

}  // namespace
}  // namespace polder::memory
