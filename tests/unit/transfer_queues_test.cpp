// Which hidden queue a transfer runs on, and for how long a long transfer delays others.
#include "support/memory_world.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <space/hidden_queue.h>
#include <storage_impl.h>
#include <thread>
#include <unistd.h>

// Instead of the C library's: returns at once, as that does while a processor that slept is still being woken for the other thread. The tests of
// long copies fail when the copying thread counts on the time that it takes.
extern "C" int sched_yield() noexcept { return 0; }

namespace polder::memory {
namespace {

using test::FakeDevice;
using test::FakeQueue;
using test::MemoryWorld;
using test::pattern;

constexpr uint64_t size = 1024;
const ByteRange whole{0, size};

size_t hidden_queues(const MemoryWorld& world, size_t visible) { return world.world.queues().size() - visible; }

// Kernels on the host whose results devices need are held up by the application; other transfers are not.
TEST(TransferQueues, UploadsBehindBlockedWorkDoNotHoldUpOthers) {
    constexpr uint32_t blocked = 6;
    MemoryWorld world{{.separate_memories = 1, .queues = blocked + 1}};
    std::vector<Ref<Storage>> waiting;
    for (uint32_t i = 0; i < blocked; ++i) {
        waiting.push_back(world.storage(size));
        world.queue(0, i).hold_back(true);
        const auto written = world.kernel(world.on(0, {}, i), {{waiting[i].get(), whole, Access::overwrite}});
        world.kernel(world.on(1, {&written, 1}, i), {{waiting[i].get(), whole, Access::read}});
    }
    const auto bytes = pattern(size, 3);
    const auto free = world.storage(size, {.initial_contents = bytes.data()});
    std::vector<std::byte> seen;
    world.kernel(world.on(1, {}, blocked), {{free.get(), whole, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + size); });
    while (world.world.step()) {
    }
    EXPECT_EQ(seen, bytes);
    for (uint32_t i = 0; i < blocked; ++i)
        world.queue(0, i).hold_back(false);
    world.world.run();
}

// A thousand uploads that wait for one queue need no more queues than two.
TEST(TransferQueues, TransfersThatWaitForOneQueueShareQueues) {
    MemoryWorld world{{.separate_memories = 1, .memory_bytes = uint64_t{4} << 20}};
    const size_t visible = world.world.queues().size();
    world.queue(0).hold_back(true);
    std::vector<Ref<Storage>> storages;
    for (int i = 0; i < 1000; ++i) {
        storages.push_back(world.storage(size));
        const auto written = world.kernel(world.on(0), {{storages.back().get(), whole, Access::overwrite}});
        world.kernel(world.on(1, {&written, 1}), {{storages.back().get(), whole, Access::read}});
    }
    EXPECT_EQ(hidden_queues(world, visible), size_t{HiddenQueues::parallel_queues});
    world.queue(0).hold_back(false);
    world.world.run();
}

TEST(TransferQueues, ThereIsALimit) {
    constexpr uint32_t many = HiddenQueues::max_queues + 10;
    MemoryWorld world{{.separate_memories = 1, .queues = many}};
    const size_t visible = world.world.queues().size();
    std::vector<Ref<Storage>> storages;
    for (uint32_t i = 0; i < many; ++i) {
        storages.push_back(world.storage(size));
        world.queue(0, i).hold_back(true);
        const auto written = world.kernel(world.on(0, {}, i), {{storages[i].get(), whole, Access::overwrite}});
        world.kernel(world.on(1, {&written, 1}, i), {{storages[i].get(), whole, Access::read}});
    }
    EXPECT_EQ(hidden_queues(world, visible), size_t{HiddenQueues::max_queues});
    for (uint32_t i = 0; i < many; ++i)
        world.queue(0, i).hold_back(false);
    world.world.run();
}

// What another thread does while a long copy is submitted: starts it at one of the copies, and waits until it sleeps, that is, until
// it waits for a lock that the submitting thread has.
class InBetween {
public:
    template <class Work>
    void start(Work&& work) {
        finished_ = false;
        thread_ = 0;
        other_ = std::async(std::launch::async, [this, work] {
            thread_ = gettid();
            work();
            finished_ = true;
        });
        settle();
    }
    // Until the thread waits for a lock or has finished. Otherwise the whole copy could end before the system runs the thread again.
    void settle() const {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!finished_ && !is_asleep() && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
    }
    [[nodiscard]] bool has_finished() const { return finished_; }
    void join() {
        if (other_.valid())
            other_.get();
    }

private:
    // Reads the thread's state from /proc: it follows the name in parentheses.
    [[nodiscard]] bool is_asleep() const {
        std::ifstream file("/proc/self/task/" + std::to_string(thread_.load()) + "/stat");
        std::string line;
        std::getline(file, line);
        return line.find(") S ") != std::string::npos;
    }

    std::atomic<pid_t> thread_{0};
    std::atomic<bool> finished_{false};
    std::future<void> other_;
};

// A long copy from one device to another locks its storage for one chunk at a time: a thread that wants it meanwhile gets it.
TEST(TransferQueues, ALongStagedTransferLetsOthersInBetween) {
    constexpr uint64_t large = uint64_t{16} << 20;  // 32 chunks of 512 KiB
    MemoryWorld world{{.memory_bytes = 2 * large}};
    const auto storage = world.storage(large);
    const auto bytes = pattern(large, 9);
    ASSERT_TRUE(world.domain->write(world.on(1), *storage, StorageRect::of({0, large}), bytes.data(), {}));
    ASSERT_TRUE(world.domain->reserve(*storage, SpaceId{2}));
    world.world.run();

    InBetween other;
    int copies = 0;
    int copies_after = 0;
    world.world.on_copy = [&](FakeQueue&) {
        if (++copies == 5)
            other.start([&] {
                const Use use{storage.get(), {0, 64}, Access::read};
                EXPECT_TRUE(world.domain->launch(
                    world.on(1, {}, 1), {&use, 1},
                    [](driver::Waits, std::span<const DeviceAddress>) { return driver::Timepoint{}; }));
            });
        else if (copies > 5)
            other.settle();
        copies_after += other.has_finished();
    };
    std::vector<std::byte> seen;
    world.kernel(world.on(2), {{storage.get(), {0, large}, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + large); });
    world.world.on_copy = {};
    other.join();
    EXPECT_GT(copies_after, 0) << "the other thread had to wait for the whole transfer";
    EXPECT_EQ(copies, 64);
    EXPECT_LE(static_cast<StorageImpl&>(*storage).residency().pieces(), 2u);
    world.world.run();
    EXPECT_EQ(seen, bytes);
}

// So does a copy from a storage on one device to a storage on another, whole or by rows: a thread that wants either of them
// meanwhile gets it.
TEST(TransferQueues, ALongStagedCopyLetsOthersInBetween) {
    constexpr uint64_t large = uint64_t{16} << 20;  // 32 chunks of 512 KiB
    const StorageRect contiguous = StorageRect::of({0, large});
    const StorageRect rows{0, {large / 128, 64, 1}, {large / 64, 0}};  // the left half
    for (const StorageRect& rect : {contiguous, rows}) {
        for (const bool wants_target : {false, true}) {
            SCOPED_TRACE(testing::Message() << rect.shape.rows << " rows, " << wants_target);
            MemoryWorld world{{.memory_bytes = 2 * large}};
            const auto from = world.storage(large);
            const auto to = world.storage(large);
            const auto bytes = pattern(large, 9);
            const std::vector<std::byte> zeros(large);
            ASSERT_TRUE(world.domain->write(world.on(1), *from, StorageRect::of({0, large}), bytes.data(), {}));
            ASSERT_TRUE(world.domain->write(world.on(2), *to, StorageRect::of({0, large}), zeros.data(), {}));
            world.world.run();
            world.domain->ledger().reset();

            Storage& wanted = wants_target ? *to : *from;
            const uint32_t space = wants_target ? 2 : 1;
            InBetween other;
            int copies = 0;
            int copies_after = 0;
            world.world.on_copy = [&](FakeQueue&) {
                if (++copies == 5)
                    other.start([&] {
                        const Use use{&wanted, {large - 64, large}, Access::read};
                        EXPECT_TRUE(world.domain->launch(
                            world.on(space, {}, 1), {&use, 1},
                            [](driver::Waits, std::span<const DeviceAddress>) { return driver::Timepoint{}; }));
                    });
                else if (copies > 5)
                    other.settle();
                copies_after += other.has_finished();
            };
            ASSERT_TRUE(world.domain->copy(world.on(2), *from, rect, *to, rect));
            world.world.on_copy = {};
            other.join();
            EXPECT_GT(copies_after, 0) << "the other thread had to wait for the whole copy";
            EXPECT_EQ(copies, 64);
            EXPECT_EQ(world.moved(), rect.shape.row_bytes * rect.shape.rows);
            if (rect.shape.rows == 1) {
                EXPECT_LE(static_cast<StorageImpl&>(*from).residency().pieces(), 2u);
                EXPECT_LE(static_cast<StorageImpl&>(*to).residency().pieces(), 2u);
            }
            std::vector<std::byte> seen(large);
            ASSERT_TRUE(world.domain->read(world.on(2), *to, StorageRect::of({0, large}), seen.data(), {}));
            world.world.run();
            std::vector<std::byte> expected(large);
            for (uint64_t y = 0; y < rect.shape.rows; ++y)
                std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(y * rect.layout.row_pitch), rect.shape.row_bytes,
                            expected.begin() + static_cast<ptrdiff_t>(y * rect.layout.row_pitch));
            EXPECT_TRUE(seen == expected);
            EXPECT_TRUE(from->validate());
            EXPECT_TRUE(to->validate());
        }
    }
}

// A copy of a whole storage on device 1 to one on device 2, during which something happens.
class LongCopy : public ::testing::Test {
protected:
    static constexpr uint64_t large = uint64_t{16} << 20;  // 32 chunks of 512 KiB
    void make_world(uint64_t memory_bytes) {
        from = nullptr;
        to = nullptr;
        world = std::make_unique<MemoryWorld>(MemoryWorld::Options{.memory_bytes = memory_bytes});
        from = world->storage(large);
        to = world->storage(large);
        ASSERT_TRUE(world->domain->write(world->on(1), *from, StorageRect::of(all), bytes.data(), {}));
        world->world.run();
    }
    [[nodiscard]] Result<driver::Timepoint> copy() {
        return world->domain->copy(world->on(2), *from, StorageRect::of(all), *to, StorageRect::of(all));
    }
    [[nodiscard]] std::vector<std::byte> contents(Storage& storage, uint32_t space) {
        std::vector<std::byte> seen(large);
        EXPECT_TRUE(world->domain->read(world->on(space), storage, StorageRect::of(all), seen.data(), {}));
        world->world.run();
        EXPECT_TRUE(storage.validate());
        return seen;
    }

    const ByteRange all{0, large};
    const std::vector<std::byte> bytes = pattern(large, 9);
    std::unique_ptr<MemoryWorld> world;
    Ref<Storage> from;
    Ref<Storage> to;
};

// Another storage takes the place of the one that is read, or of the one that is written.
TEST_F(LongCopy, SurvivesEvictionsInBetween) {
    for (const uint32_t space : {1u, 2u}) {
        SCOPED_TRACE(space);
        make_world(large + large / 2);
        const auto third = world->storage(large);
        InBetween other;
        int copies = 0;
        world->world.on_copy = [&, copier = std::this_thread::get_id()](FakeQueue&) {
            if (std::this_thread::get_id() != copier)  // the other thread evicts by copying
                return;
            if (++copies == 5)
                other.start([&] { EXPECT_TRUE(world->domain->reserve(*third, SpaceId{space})); });
            else if (copies > 5)
                other.settle();
        };
        const auto done = copy();
        ASSERT_TRUE(done);
        EXPECT_TRUE(other.has_finished());
        other.join();
        world->world.on_copy = {};
        world->world.run();
        // The target has memory again, which the third storage had taken.
        EXPECT_FALSE(world->domain->is_reserved(space == 1 ? *from : *third, all, SpaceId{space}));
        EXPECT_EQ(done->queue->status(done->value), Status::success);
        EXPECT_TRUE(contents(*to, 2) == bytes);
        EXPECT_TRUE(contents(*from, 1) == bytes);
    }
}

// Commands of other queues may come between the chunks: their bytes are there or overwritten, and no others.
TEST_F(LongCopy, MeetsAWriteInBetween) {
    make_world(2 * large);
    const std::vector<std::byte> ones(large, std::byte{1});
    InBetween other;
    int copies = 0;
    world->world.on_copy = [&](FakeQueue&) {
        if (++copies == 5)
            other.start([&] {
                // Not through on_copy, which belongs to the other thread.
                const Use use{to.get(), all, Access::overwrite};
                EXPECT_TRUE(world->domain->launch(world->on(2, {}, 1), {&use, 1},
                                                  [&](driver::Waits waits, std::span<const DeviceAddress> at) {
                                                      FakeDevice& device = *world->devices[2];
                                                      return world->queue(2, 1).submit({waits}, [&, address = at[0]] {
                                                          std::ranges::copy(ones, device.bytes(address, large));
                                                      });
                                                  }));
            });
    };
    const auto done = copy();
    ASSERT_TRUE(done);
    other.join();
    world->world.on_copy = {};
    world->world.run();
    const auto seen = contents(*to, 2);
    for (uint64_t i = 0; i < large; ++i)
        ASSERT_TRUE(seen[i] == bytes[i] || seen[i] == std::byte{1}) << i;
    EXPECT_TRUE(contents(*from, 1) == bytes);
}

// The chunks from the tenth on are not executed; the ones before and the source stay right.
TEST_F(LongCopy, FailsWithALaterChunk) {
    make_world(2 * large);
    int copies = 0;
    world->world.on_copy = [&](FakeQueue& queue) {
        if (++copies == 20)
            queue.fail_next();
    };
    const auto done = copy();
    ASSERT_TRUE(done);
    world->world.on_copy = {};
    world->world.run();
    EXPECT_NE(done->queue->status(done->value), Status::success);
    EXPECT_TRUE(contents(*from, 1) == bytes);
    EXPECT_TRUE(to->validate());
    // Nothing that failed is waited for again: the next copy succeeds.
    const auto again = world->domain->copy(world->on(2, {}, 1), *from, StorageRect::of(all), *to, StorageRect::of(all));
    ASSERT_TRUE(again);
    world->world.run();
    EXPECT_EQ(again->queue->status(again->value), Status::success);
    EXPECT_TRUE(contents(*to, 2) == bytes);
}

TEST_F(LongCopy, GoesFromOneHalfOfAStorageToTheOther) {
    make_world(3 * large);
    const auto both = world->storage(2 * large);
    const ByteRange second{large, 2 * large};
    ASSERT_TRUE(world->domain->write(world->on(1), *both, StorageRect::of(all), bytes.data(), {}));
    const auto done = world->domain->copy(world->on(2), *both, StorageRect::of(all), *both, StorageRect::of(second));
    ASSERT_TRUE(done);
    world->world.run();
    std::vector<std::byte> seen(large);
    ASSERT_TRUE(world->domain->read(world->on(2), *both, StorageRect::of(second), seen.data(), {}));
    world->world.run();
    EXPECT_TRUE(seen == bytes);
    EXPECT_TRUE(contents(*both, 1) == bytes);
}

// 25,600 chunks of 4 MiB, on devices that have addresses but no bytes. A thread that wants one of the storages gets it after
// few of them, at the beginning as at the end.
TEST(TransferQueues, ACopyOf100GiBHoldsNoLockForLongerThanAChunk) {
    constexpr uint64_t large = uint64_t{100} << 30;
    MemoryWorld world{{.memory_bytes = large + (uint64_t{1} << 30), .has_bytes = false}};
    const auto from = world.storage(large);
    const auto to = world.storage(large);
    const ByteRange all{0, large};
    const Use filled{from.get(), all, Access::overwrite};
    ASSERT_TRUE(
        world.domain->launch(world.on(1), {&filled, 1}, [&](driver::Waits waits, std::span<const DeviceAddress>) {
            return world.queue(1).submit({waits}, [] {});
        }));
    InBetween other;
    int copies = 0;
    int asked_at = 0;  // 0: not, or has got it
    int longest = 0;
    world.world.on_copy = [&](FakeQueue&) {
        ++copies;
        if (copies == 9 || copies == 25'001 || copies == 45'001) {
            asked_at = copies;
            other.start([&] {
                const Use uses[] = {{from.get(), all, Access::read}, {to.get(), all, Access::read}};
                const StorageGuard guard{uses};
            });
        } else if (asked_at != 0 && other.has_finished()) {
            longest = std::max(longest, copies - asked_at);
            asked_at = 0;
            other.join();
        }
    };
    ASSERT_TRUE(world.domain->copy(world.on(2), *from, StorageRect::of(all), *to, StorageRect::of(all)));
    world.world.on_copy = {};
    EXPECT_EQ(copies, 51'200);
    EXPECT_EQ(asked_at, 0) << "the other thread has waited until the end";
    EXPECT_LT(longest, 100);
    EXPECT_LE(static_cast<StorageImpl&>(*from).residency().pieces(), 2u);
    EXPECT_LE(static_cast<StorageImpl&>(*to).residency().pieces(), 2u);
    world.world.run();
}

}  // namespace
}  // namespace polder::memory
