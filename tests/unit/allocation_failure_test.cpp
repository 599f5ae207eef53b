// Every allocation of the host's memory that a command makes fails in turn: the command fails or succeeds, no lock stays
// held, the bytes stay what they were, and no operation still uses the application's memory. An executable of its own,
// because it replaces operator new.
#include "allocation/sparse.h"
#include "support/memory_world.h"

#include <base/completion.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <new>
#include <thread>

namespace {

// Allocations of this thread until one fails; below 0: none does.
thread_local int64_t allocations_left = -1;
thread_local bool has_failed_one = false;

void* allocate(size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0) {
        has_failed_one = true;
        throw std::bad_alloc{};
    }
    if (void* const memory = std::malloc(size ? size : 1))
        return memory;
    throw std::bad_alloc{};
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace polder::memory {
namespace {

using test::FakeQueue;
using test::MemoryWorld;
using test::pattern;
using test::Peers;

constexpr uint64_t size = 4096;
constexpr int buffers = 12;

// Twelve buffers, the first half of each written on device 1 and the second half on device 2.
struct Scene {
    explicit Scene(Peers peers) : world({.peers = peers, .seed = 3, .memory_bytes = uint64_t{1} << 20}) {
        for (int i = 0; i < buffers; ++i) {
            storages.push_back(world.storage(size));
            contents.push_back(pattern(size, static_cast<uint8_t>(17 * i)));
            for (uint32_t space : {0u, 1u, 2u})
                EXPECT_TRUE(world.domain->reserve(*storages.back(), SpaceId{space}));
            for (uint32_t half : {0u, 1u}) {
                const ByteRange range{half * size / 2, (half + 1) * size / 2};
                EXPECT_TRUE(world.domain->write(world.on(1 + half), *storages.back(), StorageRect::of(range),
                                                contents.back().data() + range.begin, {}));
            }
        }
        world.world.run();
    }
    // Commands that only read have changed nothing, whether they have failed or not.
    void expect_contents() {
        for (int i = 0; i < buffers; ++i) {
            std::vector<std::byte> seen(size);
            ASSERT_TRUE(world.domain->read(world.on(1), *storages[i], StorageRect::of({0, size}), seen.data(), {}));
            world.world.run();
            ASSERT_EQ(seen, contents[i]) << "buffer " << i;
        }
    }
    [[nodiscard]] std::vector<Use> uses(Access access, ByteRange range) const {
        std::vector<Use> all;
        for (const auto& storage : storages)
            all.push_back({storage.get(), range, access});
        return all;
    }
    // Another thread can use every storage: no lock stayed held.
    void expect_unlocked() {
        auto other = std::async(std::launch::async, [&] {
            const std::vector<Use> all = uses(Access::read, {0, 16});
            return world.domain
                ->launch(world.on(1, {}, 1), all,
                         [&](driver::Waits waits, std::span<const DeviceAddress>) {
                             return world.queue(1, 1).submit({waits}, [] {});
                         })
                .has_value();
        });
        if (other.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
            ADD_FAILURE() << "a lock is held";
            std::abort();  // the other thread cannot be joined
        }
        EXPECT_TRUE(other.get());
    }
    void expect_valid() {
        for (const auto& storage : storages)
            ASSERT_TRUE(storage->validate());
    }

    MemoryWorld world;
    std::vector<Ref<Storage>> storages;
    std::vector<std::vector<std::byte>> contents;
};

enum class Bytes : uint8_t { kept, changed };

// `command` reports success, or fails, or throws std::bad_alloc.
template <class Command>
void fail_each_allocation(Bytes bytes, Command&& command) {
    for (const Peers peers : {Peers::none, Peers::all}) {
        int failures = 0;
        for (int64_t n = 0;; ++n) {
            SCOPED_TRACE(n);
            Scene scene{peers};
            has_failed_one = false;
            allocations_left = n;
            bool succeeded = false;
            try {
                succeeded = command(scene);
            } catch (const std::bad_alloc&) {
            }
            allocations_left = -1;
            EXPECT_TRUE(succeeded || has_failed_one);
            failures += !succeeded;
            scene.expect_unlocked();
            scene.expect_valid();
            scene.world.world.run();
            if (bytes == Bytes::kept)
                scene.expect_contents();
            ASSERT_FALSE(::testing::Test::HasFailure());
            if (!has_failed_one)
                break;
        }
        EXPECT_GT(failures, 0);
    }
}

bool launch(Scene& scene, Access access, ByteRange range) {
    std::vector<Use> uses;
    {
        const int64_t left = std::exchange(allocations_left, -1);
        uses = scene.uses(access, range);
        allocations_left = left;
    }
    FakeQueue& queue = scene.world.queue(2);
    return scene.world.domain
        ->launch(scene.world.on(2), uses,
                 [&](driver::Waits waits, std::span<const DeviceAddress>) { return queue.submit({waits}, [] {}); })
        .has_value();
}

TEST(AllocationFailure, KernelThatReadsTwelveBuffersWithTransfers) {
    fail_each_allocation(Bytes::kept, [](Scene& scene) { return launch(scene, Access::read, {100, 4000}); });
}

TEST(AllocationFailure, KernelThatWritesPartsOfTwelveBuffers) {
    fail_each_allocation(Bytes::changed, [](Scene& scene) { return launch(scene, Access::read_write, {100, 4000}); });
}

TEST(AllocationFailure, KernelWhoseBytesAreInPlace) {
    fail_each_allocation(Bytes::kept, [](Scene& scene) { return launch(scene, Access::read, {2048, 4000}); });
}

TEST(AllocationFailure, ReadOfSeveralPartsLeavesTheApplicationsMemoryAlone) {
    fail_each_allocation(Bytes::kept, [](Scene& scene) {
        static std::byte memory[size];
        const StorageRect rect{0, {64, 40, 1}, {100, 0}};
        bool succeeded = false;
        try {
            succeeded =
                scene.world.domain->read(scene.world.on(2), *scene.storages[0], rect, memory, {64, 0}).has_value();
        } catch (const std::bad_alloc&) {
        }
        if (!succeeded) {
            allocations_left = -1;
            // The application may use its memory for something else now.
            std::fill(std::begin(memory), std::end(memory), std::byte{0xEE});
            scene.world.world.run();
            for (const std::byte byte : memory)
                EXPECT_EQ(byte, std::byte{0xEE});
        }
        return succeeded;
    });
}

TEST(AllocationFailure, CopyOfSeveralParts) {
    fail_each_allocation(Bytes::changed, [](Scene& scene) {
        const StorageRect rect{0, {64, 40, 1}, {100, 0}};
        return scene.world.domain->copy(scene.world.on(2), *scene.storages[0], rect, *scene.storages[1], rect)
            .has_value();
    });
}

// Commands of twelve queues use a storage when it is released: a list of them needs memory from the heap. The release needs
// none and waits for nothing; the memory goes back, and the callback is called, when the commands are complete.
TEST(AllocationFailure, ReleasingAStorageThatTwelveQueuesUse) {
    constexpr uint32_t queues = 12;
    bool failed = true;
    for (int64_t n = 0; failed; ++n) {
        SCOPED_TRACE(n);
        MemoryWorld world{{.queues = queues}};
        const uint64_t live = world.space(1).pool().statistics().live.value;
        Ref<Storage> storage = world.storage(size);
        for (uint32_t i = 0; i < queues; ++i)
            world.kernel(world.on(1, {}, i), {{storage.get(), {0, size}, Access::overwrite}});
        std::atomic<int> calls{0};
        storage->on_destroyed({[](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &calls});
        const size_t executed = world.world.operations_executed();
        has_failed_one = false;
        allocations_left = n;
        storage = nullptr;
        allocations_left = -1;
        failed = has_failed_one;
        EXPECT_EQ(world.world.operations_executed(), executed) << "the release has waited";
        EXPECT_EQ(calls, 0);
        world.world.run();
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        const auto is_back = [&] {
            retry_now();
            world.space(1).pool().drain();
            return calls == 1 && world.space(1).pool().statistics().live.value == live;
        };
        while (!is_back() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(calls, 1);
        EXPECT_EQ(world.space(1).pool().statistics().live.value, live);
        EXPECT_EQ(world.space(1).pool().statistics().deferred_blocks, 0u);
        ASSERT_FALSE(::testing::Test::HasFailure());
        EXPECT_TRUE(n > 0 || failed);
    }
}

// The same after the context was destroyed: the destruction of a storage needs no domain.
TEST(AllocationFailure, ReleasingADomainAfterAStorageThatCouldNotEnd) {
    MemoryWorld world{{.queues = 12}};
    Ref<Storage> storage = world.storage(size);
    for (uint32_t i = 0; i < 12; ++i)
        world.kernel(world.on(1, {}, i), {{storage.get(), {0, size}, Access::overwrite}});
    has_failed_one = false;
    allocations_left = 0;
    storage = nullptr;
    allocations_left = -1;
    EXPECT_TRUE(has_failed_one);
    world.domain.reset();
    world.world.run();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto is_back = [&] {
        retry_now();
        world.space(1).pool().drain();
        return world.space(1).pool().statistics().live.value == 0;
    };
    while (!is_back() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(world.space(1).pool().statistics().live.value, 0u);
}

// Some chunks are submitted when another one fails: the source stays right, and both storages can be used.
TEST(AllocationFailure, CopyOfSeveralChunks) {
    constexpr uint64_t large = uint64_t{700} << 10;
    fail_each_allocation(Bytes::kept, [&](Scene& scene) {
        const int64_t left = std::exchange(allocations_left, -1);
        MemoryWorld& world = scene.world;
        const ByteRange all{0, large};
        const auto from = world.storage(large), to = world.storage(large);
        const auto bytes = pattern(large, 3);
        EXPECT_TRUE(world.domain->write(world.on(1), *from, StorageRect::of(all), bytes.data(), {}));
        world.world.run();
        allocations_left = left;
        bool succeeded = false;
        try {
            succeeded =
                world.domain->copy(world.on(2), *from, StorageRect::of(all), *to, StorageRect::of(all)).has_value();
        } catch (const std::bad_alloc&) {
        }
        allocations_left = -1;
        EXPECT_TRUE(from->validate() && to->validate());
        const Ref<Storage> checked[] = {from, succeeded ? to : from};
        for (const auto& storage : checked) {
            std::vector<std::byte> seen(large);
            EXPECT_TRUE(world.domain->read(world.on(1), *storage, StorageRect::of(all), seen.data(), {}));
            world.world.run();
            EXPECT_TRUE(seen == bytes);
        }
        return succeeded;
    });
}

TEST(AllocationFailure, WriteOfManyRows) {
    fail_each_allocation(Bytes::changed, [](Scene& scene) {
        static const std::byte memory[size] = {};
        const StorageRect rect{0, {64, 40, 1}, {100, 0}};
        return scene.world.domain->write(scene.world.on(2), *scene.storages[0], rect, memory, {64, 0}).has_value();
    });
}

TEST(AllocationFailure, Fill) {
    fail_each_allocation(Bytes::changed, [](Scene& scene) {
        const std::byte one{1};
        return scene.world.domain->fill(scene.world.on(2), *scene.storages[0], {10, 90}, {&one, 1}).has_value();
    });
}

TEST(AllocationFailure, MapAndMigration) {
    fail_each_allocation(Bytes::kept, [](Scene& scene) {
        return scene.world.domain
            ->map(scene.world.on(2), *scene.storages[0], StorageRect{0, {64, 40, 1}, {100, 0}}, MapAccess::read)
            .has_value();
    });
    fail_each_allocation(Bytes::kept, [](Scene& scene) {
        const Use use{scene.storages[0].get(), {10, 4000}, Access::read};
        return scene.world.domain->migrate(scene.world.on(2), {&use, 1}, SpaceId{2}, Domain::Content::kept).has_value();
    });
}

// The first part of a storage that is too large to have memory on the host as a whole. A failure after the part was counted takes the
// count back.
TEST(AllocationFailure, MapOfAPartOfALargeStorage) {
    int failures = 0;
    for (int64_t n = 0;; ++n) {
        SCOPED_TRACE(n);
        MemoryWorld world{{}};
        const Ref<Storage> storage = world.storage(uint64_t{64} << 20);
        ASSERT_TRUE(world.domain->reserve(*storage, {0, 4096}, SpaceId{1}));  // so that a second replica needs memory
        const auto map = [&] { return world.domain->reserve_map(*storage, {0, 1}).has_value(); };
        has_failed_one = false;
        allocations_left = n;
        bool succeeded = false;
        try {
            succeeded = map();
        } catch (const std::bad_alloc&) {
        }
        allocations_left = -1;
        EXPECT_TRUE(succeeded || has_failed_one);
        failures += !succeeded;
        const auto live = [&] { return world.space(0).pool().statistics().live.value; };
        const uint64_t one_page = SparseMemory::page().value;
        EXPECT_EQ(live(), succeeded ? one_page : 0);
        EXPECT_TRUE(map());
        EXPECT_EQ(live(), one_page);
        EXPECT_TRUE(storage->validate());
        ASSERT_FALSE(::testing::Test::HasFailure());
        if (!has_failed_one)
            break;
    }
    EXPECT_GT(failures, 0);
}

// A destructor cannot fail: without memory for its list of operations, it is tried again later (decision 68).
TEST(AllocationFailure, ReleaseWithWorkInFlight) {
    for (int64_t n = 0; n < 40; ++n) {
        Scene scene{Peers::none};
        for (int i = 0; i < 10; ++i)  // many pieces, several queues
            static_cast<void>(
                scene.world.kernel(scene.world.on(1 + i % 2, {}, static_cast<uint32_t>(i / 5)),
                                   {{scene.storages[0].get(), ByteRange::at(i * 100, ByteCount{50}), Access::read}}));
        std::atomic<int> destroyed{0};
        scene.storages[0]->on_destroyed({[](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &destroyed});
        allocations_left = n;
        scene.storages[0] = {};
        allocations_left = -1;
        scene.world.world.run();
        for (int wait = 0; wait < 1000 && destroyed == 0; ++wait)  // on the callback thread
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_EQ(destroyed, 1);
    }
}

}  // namespace
}  // namespace polder::memory
