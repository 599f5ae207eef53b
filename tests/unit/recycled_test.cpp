#include <base/recycled.h>

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

} // namespace
} // namespace polder
