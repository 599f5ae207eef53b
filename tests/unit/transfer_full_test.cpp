// A domain whose memory is full: no thread waits under a lock, and a refused command reports its error.
#include "room_request.h"
#include "storage_impl.h"
#include "support/memory_world.h"

#include <chrono>
#include <functional>
#include <future>

namespace polder::memory {
namespace {

using test::MemoryWorld;
using test::pattern;
using test::Peers;

TEST(TransferFull, OutOfMemoryIsReportedAndTheContextGoesOn) {
    MemoryWorld world{{.memory_bytes = 4096}};
    const auto large = world.storage(1 << 20);
    const auto small = world.storage(1024);
    const auto refused = world.domain->reserve(*large, SpaceId{1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status(), Status::mem_object_allocation_failure);
    EXPECT_FALSE(refused.error().detail().empty());
    EXPECT_TRUE(world.domain->reserve(*small, SpaceId{1}));
}

// Ends when another thread has used the domain. It cannot while the thread that waits for this holds the lock.
class Gate {
public:
    explicit Gate(MemoryWorld& world) : world_(world), other_(world.storage(64)) {
        EXPECT_TRUE(world.domain->reserve(*other_, host_space));
    }
    void pass_when_another_thread_can_fill() {
        fill_ = std::async(std::launch::async, [this] {
            const std::byte one{1};
            return world_.domain->fill(world_.on(0), *other_, {0, 64}, {&one, 1}).has_value();
        });
        went_on_ = fill_.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
    }
    // After the wait.
    [[nodiscard]] bool passed() { return fill_.valid() && fill_.get() && went_on_; }

private:
    MemoryWorld& world_;
    Ref<Storage> other_;
    std::future<bool> fill_;
    bool went_on_ = false;
};

// All of a device's 4096 bytes, which a kernel still uses.
void fill_memory_until_passed(MemoryWorld& world, Gate& gate) {
    const auto released = world.storage(4096);
    ASSERT_TRUE(world.domain->reserve(*released, SpaceId{1}));
    world.kernel(world.on(1), {{released.get(), {0, 4096}, Access::read_write}},
                 [&](const auto&) { gate.pass_when_another_thread_can_fill(); });
}

// The host copies initial contents itself, so it has to wait for memory that a kernel uses.
TEST(TransferFull, WhileOneThreadWaitsForMemory_OthersGoOn) {
    MemoryWorld world{{}};
    Gate gate{world};
    {
        const auto released = world.storage(4096);
        ASSERT_TRUE(world.domain->reserve(*released, host_space));
        world.space(0).pool().set_limit(world.space(0).pool().statistics().live);
        world.kernel(world.on(0), {{released.get(), {0, 4096}, Access::read_write}},
                     [&](const auto&) { gate.pass_when_another_thread_can_fill(); });
    }
    const auto contents = pattern(4096, 1);
    EXPECT_TRUE(Storage::create(*world.domain, ByteCount{4096}, {.initial_contents = contents.data()}));
    EXPECT_TRUE(gate.passed());
    world.world.run();
}

// Memory that a kernel still uses is the next command's at once: the command waits on its device, not the thread.
TEST(TransferFull, CommandWhoseMemoryIsStillInUseIsSubmittedAtOnce) {
    using Command = std::function<bool(MemoryWorld&, Storage&)>;
    const std::byte bytes[4096] = {};
    const StorageRect all = StorageRect::of({0, 4096});
    const auto source = [](MemoryWorld& world) { return world.storage(4096); };
    const std::pair<const char*, Command> commands[] = {
        {"write",
         [&](auto& world, auto& to) { return world.domain->write(world.on(1), to, all, bytes, {}).has_value(); }},
        {"fill",
         [&](auto& world, auto& to) { return world.domain->fill(world.on(1), to, {0, 4096}, {bytes, 1}).has_value(); }},
        {"copy", [&](auto& world,
                     auto& to) { return world.domain->copy(world.on(1), *source(world), all, to, all).has_value(); }},
        {"kernel",
         [&](auto& world, auto& to) {
             return world.kernel(world.on(1), {{&to, {0, 4096}, Access::write}}).queue != nullptr;
         }},
        {"migrate",
         [&](auto& world, auto& to) {
             const Use use{&to, {0, 4096}, Access::read};
             return world.domain->migrate(world.on(1), {&use, 1}, SpaceId{1}, Domain::Content::kept).has_value();
         }},
    };
    for (const auto& [name, command] : commands) {
        SCOPED_TRACE(name);
        MemoryWorld world{{.memory_bytes = 4096}};
        const auto wanted = world.storage(4096);
        Gate gate{world};
        fill_memory_until_passed(world, gate);
        const size_t executed = world.world.operations_executed();
        EXPECT_TRUE(command(world, *wanted));
        EXPECT_EQ(world.world.operations_executed(), executed);
        world.world.run();
        EXPECT_TRUE(gate.passed());
    }
}

// Host memory is full. It is free again after a kernel that ends only when another thread has used the domain.
TEST(TransferFull, StagedTransferDoesNotWaitForHostMemory) {
    MemoryWorld world{{}};
    const auto moved = world.storage(1 << 18);
    const auto contents = pattern(1 << 18, 3);
    ASSERT_TRUE(world.domain->reserve(*moved, SpaceId{2}));
    ASSERT_TRUE(world.domain->write(world.on(1), *moved, StorageRect::of({0, 1 << 18}), contents.data(), {}));
    world.world.run();
    Gate gate{world};
    {
        const auto released = world.storage(4096);
        ASSERT_TRUE(world.domain->reserve(*released, host_space));
        world.space(0).pool().set_limit(world.space(0).pool().statistics().live);
        world.kernel(world.on(0), {{released.get(), {0, 4096}, Access::read_write}},
                     [&](const auto&) { gate.pass_when_another_thread_can_fill(); });
    }
    const size_t executed = world.world.operations_executed();
    std::vector<std::byte> seen;
    world.kernel(world.on(2), {{moved.get(), {0, 1 << 18}, Access::read}},
                 [&](const auto& buffers) { seen.assign(buffers[0], buffers[0] + (1 << 18)); });
    EXPECT_EQ(world.world.operations_executed(), executed);  // waiting would have executed some
    world.world.run();
    EXPECT_TRUE(gate.passed());
    EXPECT_EQ(seen, contents);
}

TEST(TransferFull, TransfersThatShareTheStagingReserveDoNotMix) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        constexpr uint64_t large = uint64_t{3} << 18;  // chunks of 256 KiB
        MemoryWorld world{{.seed = seed, .memory_bytes = 4 * large}};
        const Ref<Storage> storages[] = {world.storage(large), world.storage(large), world.storage(large)};
        std::vector<std::vector<std::byte>> contents;
        for (const auto& storage : storages) {
            ASSERT_TRUE(world.domain->reserve(*storage, SpaceId{2}));
            contents.push_back(pattern(large, static_cast<uint8_t>(contents.size() * 91 + seed)));
            ASSERT_TRUE(
                world.domain->write(world.on(1), *storage, StorageRect::of({0, large}), contents.back().data(), {}));
        }
        const ByteCount live = world.space(0).pool().statistics().live;
        // The reserve, and what the address sanitizer has behind each block.
        EXPECT_GE(live.value, uint64_t{1} << 20);
        EXPECT_LE(live.value, (uint64_t{1} << 20) + 1024);
        world.space(0).pool().set_limit(live);
        std::vector<std::byte> seen[3];
        for (uint32_t i = 0; i < 3; ++i) {
            world.kernel(world.on(2, {}, i % 2), {{storages[i].get(), {0, large}, Access::read}},
                         [&seen, i](const auto& buffers) { seen[i].assign(buffers[0], buffers[0] + large); });
            world.world.step(world.world.random()() % 4);
        }
        world.world.run();
        for (uint32_t i = 0; i < 3; ++i)
            EXPECT_EQ(seen[i], contents[i]) << "storage " << i << ", seed " << seed;
        EXPECT_EQ(world.space(0).pool().statistics().live_peak, live);
    }
}

TEST(TransferFull, CommandWhoseMemoryDoesNotFitTakesNone) {
    MemoryWorld world{{.memory_bytes = 1 << 20}};
    const Ref<Storage> large[] = {world.storage(700 << 10), world.storage(700 << 10)};
    const auto all = [](const Ref<Storage>& storage) { return Use{storage.get(), {0, storage->size().value}}; };
    const Use both[] = {all(large[0]), all(large[1]), all(large[0])};
    EXPECT_FALSE(world.domain->reserve(both, SpaceId{1}));
    EXPECT_EQ(world.space(1).pool().statistics().live_blocks, 0u);
    EXPECT_FALSE(world.domain->is_reserved(*large[0], {0, 1}, SpaceId{1}));
    EXPECT_TRUE(world.domain->reserve(*large[1], SpaceId{1}));
    const Ref<Storage> small = world.storage(64 << 10);
    const Use fit[] = {all(small), all(large[1]), all(small)};
    EXPECT_TRUE(world.domain->reserve(fit, SpaceId{1}));
    EXPECT_EQ(world.space(1).pool().statistics().live_blocks, 2u);
}

// The memory of a released storage is used again by another one while a kernel still writes it.
TEST(TransferFull, MemoryIsUsedAgainInTheOrderOfTheQueue) {
    for (const uint32_t queue_number : {0u, 1u}) {
        MemoryWorld world{{.memory_bytes = 1 << 20}};
        constexpr uint64_t size = 768 << 10;
        const auto fill = [&](uint32_t number, std::byte value) {
            const Ref<Storage> storage = world.storage(size);
            ASSERT_TRUE(world.domain->reserve(*storage, SpaceId{1}, &world.queue(1, number)));
            world.kernel(world.on(1, {}, number), {{storage.get(), {0, size}, Access::overwrite}},
                         [=](const auto& at) { std::fill_n(at[0], size, value); });
        };
        fill(0, std::byte{1});
        const size_t executed = world.world.operations_executed();
        const Ref<Storage> last = world.storage(size);
        ASSERT_TRUE(world.domain->reserve(*last, SpaceId{1}, &world.queue(1, queue_number)));
        std::vector<std::byte> seen;
        const auto on = world.on(1, {}, queue_number);
        const driver::Timepoint written = world.kernel(on, {{last.get(), {0, size}, Access::overwrite}},
                                                       [=](const auto& at) { std::fill_n(at[0], size, std::byte{2}); });
        world.kernel(world.on(1, {&written, 1}, 0), {{last.get(), {0, size}, Access::read}},
                     [&](const auto& at) { seen.assign(at[0], at[0] + size); });
        EXPECT_EQ(world.world.operations_executed(), executed);  // no thread waited
        world.world.run();
        EXPECT_EQ(seen, std::vector<std::byte>(size, std::byte{2}));
    }
}

TEST(TransferFull, NoHostMemoryForStagingIsAnErrorWhenTheSecondDeviceIsFirstUsed) {
    MemoryWorld world{{}};
    const auto storage = world.storage(4096);
    world.space(0).pool().set_limit(ByteCount{4096});
    EXPECT_TRUE(world.domain->reserve(*storage, SpaceId{1}));
    const auto refused = world.domain->reserve(*storage, SpaceId{2});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status(), Status::mem_object_allocation_failure);
    EXPECT_FALSE(refused.error().detail().empty());
    EXPECT_TRUE(world.domain->reserve(*world.storage(64), SpaceId{1}));
    world.space(0).pool().set_limit(ByteCount{2 << 20});
    EXPECT_TRUE(world.domain->reserve(*storage, SpaceId{2}));
    world.world.run();
}

TEST(TransferFull, DevicesThatReadEachOtherNeedNoStaging) {
    MemoryWorld world{{.peers = Peers::all}};
    const auto storage = world.storage(4096);
    EXPECT_TRUE(world.domain->reserve(*storage, SpaceId{1}));
    EXPECT_TRUE(world.domain->reserve(*storage, SpaceId{2}));
    EXPECT_EQ(world.space(0).pool().statistics().live_blocks, 0u);
}

TEST(TransferFull, TwoThreadsThatFirstUseAStorageGiveItMemoryOnce) {
    for (int round = 0; round < 200; ++round) {
        MemoryWorld world{{.memory_bytes = 4096}};
        const auto storage = world.storage(4096);
        auto one = std::async(std::launch::async, [&] { return world.domain->reserve(*storage, SpaceId{1}); });
        const auto other = world.domain->reserve(*storage, SpaceId{1});
        EXPECT_TRUE(one.get());
        EXPECT_TRUE(other);
        EXPECT_EQ(world.space(1).pool().statistics().live_blocks, 1u);
    }
}

// The threads that hold the storages wait themselves, also for this one: each search looks at all storages.
TEST(TransferFull, ARequestThatOthersKeepOutSearchesAFewTimes) {
    constexpr uint64_t replicas = 64;
    MemoryWorld world{{.separate_memories = 1, .memory_bytes = replicas * 1024}};
    std::vector<Ref<Storage>> storages;
    for (uint64_t i = 0; i < replicas; ++i) {
        storages.push_back(world.storage(1024));
        ASSERT_TRUE(world.domain->reserve(*storages.back(), SpaceId{1}));
    }
    for (const Ref<Storage>& storage : storages)
        static_cast<StorageImpl&>(*storage).begin_allocating(SpaceId{1});
    const auto next = world.storage(1024);
    const uint64_t examined = world.space(1).activity().examined;
    EXPECT_FALSE(world.domain->reserve(*next, SpaceId{1}));
    EXPECT_LE(world.space(1).activity().examined - examined, (RoomRequest::vain_waits_max + 3) * 2 * replicas);
    for (const Ref<Storage>& storage : storages)
        static_cast<StorageImpl&>(*storage).end_allocating(SpaceId{1});
    EXPECT_TRUE(world.domain->reserve(*next, SpaceId{1}));
}

}  // namespace
}  // namespace polder::memory
