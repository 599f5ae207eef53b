// Which hidden queue a transfer runs on, and for how long a long transfer keeps others out.
#include "support/memory_world.h"

#include <atomic>
#include <chrono>
#include <future>
#include <storage_impl.h>
#include <thread>
#include <transfer/hidden_queue.h>

namespace polder::memory {
namespace {

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

// A long copy from one device to another locks its storage for one chunk at a time: a thread that wants it meanwhile gets it.
TEST(TransferQueues, ALongStagedTransferLetsOthersInBetween) {
    constexpr uint64_t large = uint64_t{16} << 20;  // 32 chunks of 512 KiB
    MemoryWorld world{{.memory_bytes = 2 * large}};
    const auto storage = world.storage(large);
    const auto bytes = pattern(large, 9);
    ASSERT_TRUE(world.domain->write(world.on(1), *storage, StorageRect::of({0, large}), bytes.data(), {}));
    ASSERT_TRUE(world.domain->reserve(*storage, SpaceId{2}));
    world.world.run();

    std::atomic<bool> about_to_lock{false};
    std::atomic<bool> finished{false};
    std::future<void> other;
    int copies = 0;
    int copies_after = 0;
    world.world.on_copy = [&](FakeQueue&) {
        if (++copies == 5) {
            other = std::async(std::launch::async, [&] {
                const Use use{storage.get(), {0, 64}, Access::read};
                about_to_lock = true;
                EXPECT_TRUE(world.domain->launch(
                    world.on(1, {}, 1), {&use, 1},
                    [](driver::Waits, std::span<const DeviceAddress>) { return driver::Timepoint{}; }));
                finished = true;
            });
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
            while (!about_to_lock && std::chrono::steady_clock::now() < end)
                std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        copies_after += finished;
    };
    std::vector<std::byte> seen;
    world.kernel(world.on(2), {{storage.get(), {0, large}, Access::read}},
                 [&](const auto& at) { seen.assign(at[0], at[0] + large); });
    world.world.on_copy = {};
    other.get();
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
            std::atomic<bool> about_to_lock{false};
            std::atomic<bool> finished{false};
            std::future<void> other;
            int copies = 0;
            int copies_after = 0;
            world.world.on_copy = [&](FakeQueue&) {
                if (++copies == 5) {
                    other = std::async(std::launch::async, [&] {
                        const Use use{&wanted, {large - 64, large}, Access::read};
                        about_to_lock = true;
                        EXPECT_TRUE(world.domain->launch(
                            world.on(space, {}, 1), {&use, 1},
                            [](driver::Waits, std::span<const DeviceAddress>) { return driver::Timepoint{}; }));
                        finished = true;
                    });
                    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
                    while (!about_to_lock && std::chrono::steady_clock::now() < end)
                        std::this_thread::yield();
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                }
                copies_after += finished;
            };
            ASSERT_TRUE(world.domain->copy(world.on(2), *from, rect, *to, rect));
            world.world.on_copy = {};
            other.get();
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

}  // namespace
}  // namespace polder::memory
