#include <base/recycled_arrays.h>

#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

namespace polder {
namespace {

struct Counted {
    static inline int alive = 0;
    Counted() { ++alive; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    virtual ~Counted() { --alive; }
};
struct Thing final : Counted, Recycled<Thing> {
    uint64_t words[12] = {};
};

TEST(Recycled, MemoryOfTheLastOneIsUsedForTheNext) {
    if (!recycling)
        GTEST_SKIP() << "every object has fresh memory under a sanitizer";
    auto first = std::make_unique<Thing>();
    const void* const place = first.get();
    std::unique_ptr<Counted> as_base = std::move(first);
    as_base.reset();
    EXPECT_EQ(std::make_unique<Thing>().get(), place);
}

TEST(Recycled, NewObjectsAreConstructed) {
    for (int i = 0; i < 3; ++i) {
        const auto thing = std::make_unique<Thing>();
        EXPECT_EQ(thing->words[11], 0u);
        thing->words[11] = 7;
    }
}

TEST(Recycled, ManyAliveAtOnceAreApart) {
    for (int round = 0; round < 3; ++round) {
        std::vector<std::unique_ptr<Thing>> things(1000);
        for (size_t i = 0; i < things.size(); ++i) {
            things[i] = std::make_unique<Thing>();
            things[i]->words[0] = i;
        }
        for (size_t i = 0; i < things.size(); ++i)
            ASSERT_EQ(things[i]->words[0], i);
    }
    EXPECT_EQ(Counted::alive, 0);
}

TEST(Recycled, OneThreadMakesWhatAnotherReleases) {
    for (int round = 0; round < 20; ++round) {
        std::vector<std::unique_ptr<Thing>> things;
        std::thread([&] {
            for (int i = 0; i < 100; ++i)
                things.push_back(std::make_unique<Thing>());
        }).join();
        std::thread([&] { things.clear(); }).join();
    }
    EXPECT_EQ(Counted::alive, 0);
}

// Lives until the thread has ended its list: it was constructed before the first release.
struct Late {
    std::unique_ptr<Thing> thing;
};

TEST(Recycled, ReleaseByALateDestructorOfAThread) {
    std::thread([] {
        thread_local Late late;
        late.thing = std::make_unique<Thing>();
        std::make_unique<Thing>().reset();
    }).join();
    EXPECT_EQ(Counted::alive, 0);
}

using Array = std::vector<uint64_t, RecycledArrays<uint64_t, 4>>;

Array array_of(size_t capacity) {
    Array array;
    array.reserve(capacity);
    return array;
}

TEST(RecycledArrays, AnArrayUsesTheMemoryOfAFreedOneOfAnotherSize) {
    if (!recycling)
        GTEST_SKIP() << "every array has fresh memory under a sanitizer";
    const void* place = nullptr;
    {
        Array array = array_of(3);
        array.push_back(1);
        place = array.data();
    }
    Array next = array_of(4);
    next.push_back(2);
    EXPECT_EQ(next.data(), place);
}

// Memory for few elements must never become that of many.
TEST(RecycledArrays, ArraysOfAllSizesAreApart) {
    for (int round = 0; round < 3; ++round) {
        std::vector<Array> arrays;
        for (size_t i = 0; i < 300; ++i) {
            arrays.push_back(array_of(i % 9 + 1));
            arrays.back().assign(i % 9 + 1, i);
        }
        for (size_t i = 0; i < arrays.size(); i += 2)
            arrays[i].assign(12, i);  // grows
        for (size_t i = 0; i < arrays.size(); ++i)
            ASSERT_EQ(arrays[i], Array(i % 2 == 0 ? 12 : i % 9 + 1, i));
    }
}

}  // namespace
}  // namespace polder
