#include <runtime/scattered_references.h>

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace polder::runtime {
namespace {

using Mode = ScatteredReferences::Mode;

struct Counted {
    std::atomic<int> destroyed{0};
    ScatteredReferences& references = ScatteredReferences::create(this, [](void* self) {
        auto* const counted = static_cast<Counted*>(self);
        ++counted->destroyed;
        counted->references.recycle();
    });
};

TEST(ScatteredReferences, TheLastReferenceThatIsReleasedDestroys) {
    Counted object;
    object.references.take();
    object.references.give_up();
    EXPECT_EQ(object.destroyed, 0);
    object.references.give_up();
    EXPECT_EQ(object.destroyed, 1);
}

TEST(ScatteredReferences, NothingIsDestroyedWhileTheyAreScattered) {
    Counted object;
    object.references.set_mode(Mode::scattered);
    object.references.take();
    object.references.give_up();
    object.references.set_mode(Mode::summed);
    EXPECT_EQ(object.destroyed, 0);
    object.references.give_up();
    EXPECT_EQ(object.destroyed, 1);
}

// References go from thread to thread, and the handle is released meanwhile.
TEST(ScatteredReferences, ThreadsThatReleaseWhatOthersTookDestroyOnce) {
    constexpr int threads = 4, steps = 2000;
    for (int round = 0; round < 50; ++round) {
        Counted object;
        object.references.set_mode(Mode::scattered);
        for (int i = 0; i < threads; ++i)
            object.references.take();
        std::vector<std::thread> workers;
        std::atomic<bool> was_destroyed_early{false};
        for (int i = 0; i < threads; ++i) {
            workers.emplace_back([&] {
                for (int step = 0; step < steps; ++step) {
                    object.references.take();
                    was_destroyed_early = was_destroyed_early || object.destroyed != 0;
                    object.references.give_up();
                }
                object.references.give_up();  // taken by the main thread
            });
        }
        object.references.set_mode(Mode::summed);
        object.references.give_up();
        for (std::thread& worker : workers)
            worker.join();
        EXPECT_FALSE(was_destroyed_early);
        EXPECT_EQ(object.destroyed, 1);
    }
}

// Counters are used again, so that what one object leaves behind must not count for the next.
TEST(ScatteredReferences, CountersOfTheNextObjectBeginAnew) {
    for (int i = 0; i < 10; ++i) {
        Counted object;
        object.references.give_up();
        EXPECT_EQ(object.destroyed, 1);
    }
}

} // namespace
} // namespace polder::runtime
