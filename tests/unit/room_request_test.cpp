// Requests for room in a full memory: which threads they wait for, and for how long. No test depends on how fast another thread is: a time is only a guard
// against hanging.
#include "domain_impl.h"
#include "support/eviction_fixture.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <sys/resource.h>
#include <thread>

namespace polder::memory {
namespace {

using namespace test;

StorageImpl& impl(const Ref<Storage>& storage) { return static_cast<StorageImpl&>(*storage); }
SpaceImpl& impl(Space& space) { return static_cast<SpaceImpl&>(space); }

// False when that took too long.
bool wait_until(const std::function<bool()>& is_true) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_true()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::yield();
    }
    return true;
}

class RoomRequests : public Eviction {};

TEST_F(RoomRequests, TheBoundIsOfTheTimeSinceTheRequestBegan) {
    using Clock = RoomRequest::Clock;
    const Clock::time_point now = Clock::now();
    const RoomRequest at_once{now, nullptr, now};
    EXPECT_EQ(at_once.give_up_at, now + RoomRequest::patience);
    // It has waited in line for most of its time.
    const RoomRequest late{now - RoomRequest::patience + 2 * RoomRequest::patience_min, nullptr, now};
    EXPECT_EQ(late.give_up_at, now + 2 * RoomRequest::patience_min);
    const RoomRequest too_late{now - 10 * RoomRequest::patience, nullptr, now};
    EXPECT_EQ(too_late.give_up_at, now + RoomRequest::patience_min);
}

TEST_F(RoomRequests, OnlyChangesThatHadBegunAreWaitedFor) {
    CountByThread changes;
    std::atomic<int> step{0};
    std::thread first([&] {
        ChangeInProgress change{&changes};
        step = 1;
        while (step != 2)
            std::this_thread::yield();
    });
    EXPECT_TRUE(wait_until([&] { return step == 1; }));
    EarlierChanges earlier{changes};
    const ChangeInProgress later{&changes};
    EXPECT_FALSE(earlier.have_ended());
    step = 2;
    first.join();
    EXPECT_TRUE(earlier.have_ended());
    EXPECT_FALSE(EarlierChanges{changes}.have_ended()) << "the later one is in progress";
}

// It waits for the owner of the guard, and changes nothing: a search that the owner makes must not wait for it.
TEST_F(RoomRequests, AThreadThatWaitsForAGuardChangesNothing) {
    MemoryWorld world{{.memory_bytes = 64 * KiB}};
    const Ref<Storage> both[] = {world.storage(KiB), world.storage(KiB)};
    // Guards are taken in the order of addresses.
    const int last = both[0].get() < both[1].get() ? 1 : 0;
    impl(both[last]).begin_allocating(device);
    const Use uses[] = {{both[0].get(), {0, KiB}}, {both[1].get(), {0, KiB}}};
    auto other = std::async(std::launch::async, [&] { return world.domain->reserve(uses, device).has_value(); });
    EXPECT_TRUE(wait_until([&] {
        if (!impl(both[1 - last]).try_begin_allocating(device))
            return impl(world.space(1)).changes().nonzero_parts() == 0;
        impl(both[1 - last]).end_allocating(device);
        return false;
    }));
    impl(both[last]).end_allocating(device);
    EXPECT_TRUE(other.get());
}

TEST_F(RoomRequests, ARequestThatWaitsForOthersChangesNothing) {
    MemoryWorld world{{.memory_bytes = 16 * KiB}};
    SpaceImpl& memory = impl(world.space(1));
    const auto pinned = world.storage(16 * KiB);
    ASSERT_TRUE(world.domain->pin(*pinned, device, Domain::Contents::unwritten));
    const auto next = world.storage(KiB);
    ChangeInProgress mine{&memory.changes()};
    const uint32_t only_mine = memory.changes().nonzero_parts();
    std::atomic<bool> is_over{false};
    auto other = std::async(std::launch::async, [&] {
        const bool added = world.domain->reserve(*next, device).has_value();
        is_over = true;
        return added;
    });
    bool was_seen_waiting = false;
    while (!is_over && !was_seen_waiting)
        was_seen_waiting = memory.turns().requests() == 1 && memory.activity().examined != 0 &&
                           memory.changes().nonzero_parts() == only_mine;
    mine.end();
    EXPECT_TRUE(was_seen_waiting);
    EXPECT_FALSE(other.get());
}

// Each of two devices' requests evicts to the host, and one on the host evicts to the devices: none has room, and each holds what another one
// searches. They fail after a few searches; their turns and guards are free again.
TEST_F(RoomRequests, ThoseThatCannotBeServedDoNotWaitForOneAnother) {
    constexpr uint64_t replicas = 16;
    constexpr int requests = 8;
    MemoryWorld world{{.peers = Peers::all, .memory_bytes = replicas * KiB}};
    world.space(0).pool().set_limit(ByteCount{replicas * KiB});
    std::vector<Ref<Storage>> storages;
    std::vector<uint32_t> places;
    for (const uint32_t space : {1U, 2U})
        for (uint64_t i = 0; i < replicas; ++i) {
            storages.push_back(written(world, KiB, static_cast<uint8_t>(storages.size()), space));
            places.push_back(space);
        }
    // Until host memory is full: a sanitizer's red zones take some of it.
    for (;;) {
        const auto bytes = pattern(KiB, static_cast<uint8_t>(storages.size()));
        const Ref<Storage> one = world.storage(KiB);
        if (!world.domain->write(world.on(0), *one, StorageRect::of({0, KiB}), bytes.data(), {}))
            break;
        world.world.run();
        storages.push_back(one);
        places.push_back(0);
    }
    ASSERT_GT(storages.size(), 2 * replicas + replicas / 2);
    ASSERT_LE(storages.size(), 3 * replicas);
    world.world.run();
    std::vector<Ref<Storage>> wanted;
    for (int i = 0; i < 3 * requests; ++i)
        wanted.push_back(world.storage(KiB));
    const auto examined = [&] {
        uint64_t all = 0;
        for (uint32_t i = 0; i < 3; ++i)
            all += world.space(i).activity().examined;
        return all;
    };
    const uint64_t before = examined();
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (uint32_t space = 0; space < 3; ++space)
        threads.emplace_back([&, space] {
            for (int i = 0; i < requests; ++i)
                failed += world.domain->reserve(*wanted[space * requests + i], SpaceId{space}) ? 0 : 1;
        });
    for (std::thread& thread : threads)
        thread.join();
    // Other requests may take room that one has made, but there is room for no more than before.
    EXPECT_EQ(failed, 3 * requests);
    // A search looks at each replica of one memory, and at those of the host once more for each victim.
    constexpr uint64_t per_search = 2 * replicas * (1 + replicas);
    EXPECT_LE(examined() - before, 3 * requests * (RoomRequest::vain_waits_max + 3) * per_search);
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_FALSE(impl(world.space(i)).turns().requested());
        EXPECT_EQ(impl(world.space(i)).changes().nonzero_parts(), 0u);
    }
    for (uint64_t i = 0; i < storages.size(); ++i)
        EXPECT_EQ(read(world, *storages[i], places[i]), pattern(KiB, static_cast<uint8_t>(i)));
}

// The victim's bytes have room on the host when a duplicate there is dropped. Another thread has the turn of host memory.
TEST_F(RoomRequests, TheTurnOfHostMemoryIsWaitedForInOrder) {
    MemoryWorld world{{.peers = Peers::all, .memory_bytes = KiB}};
    world.space(0).pool().set_limit(ByteCount{KiB + 512});
    const auto duplicate = written(world, KiB, 1, 2);
    use(world, *duplicate, Access::read, 0);
    const auto victim = written(world, KiB, 2, 1);
    world.world.run();
    const auto next = world.storage(KiB);
    FairTurns& turns = impl(world.space(0)).turns();
    FairTurns::Flow mine;
    turns.enter(mine, 1);
    std::atomic<bool> is_over{false};
    auto other = std::async(std::launch::async, [&] {
        const bool added = world.domain->reserve(*next, device).has_value();
        is_over = true;
        return added;
    });
    EXPECT_TRUE(wait_until([&] { return turns.requests() == 2 || is_over; }));
    EXPECT_FALSE(is_over);
    turns.leave();
    EXPECT_TRUE(other.get());
    EXPECT_FALSE(turns.requested());
    EXPECT_EQ(read(world, *victim, 0), pattern(KiB, 2));
}

// How often the calling thread has slept to wait.
long waits() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

// Once there is room, neither has anything to wait for.
TEST_F(RoomRequests, ThreadsThatMetWhileAnotherOneHadTheTurnGoOnWithoutWaitingForEachOther) {
    constexpr long pairs = 10'000;
    MemoryWorld world{{.memory_bytes = 1024 * KiB}};
    FairTurns& turns = impl(world.space(1)).turns();
    FairTurns::Flow mine;
    turns.enter(mine, 1);
    std::atomic<int> coming{0};
    std::atomic<long> most_waits{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] {
            ++coming;
            const long before = waits();
            for (long pair = 0; pair < pairs; ++pair)
                EXPECT_TRUE(world.domain->reserve(*world.storage(KiB), device));
            const long here = waits() - before;
            for (long most = most_waits; most < here && !most_waits.compare_exchange_weak(most, here);) {
            }
        });
    EXPECT_TRUE(wait_until([&] { return coming == 2; }));
    std::this_thread::sleep_for(
        std::chrono::milliseconds(50));  // they have come, unless they do not run: then they do not meet
    turns.leave();
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_LT(most_waits, pairs / 10);
    EXPECT_FALSE(turns.requested());
}

}  // namespace
}  // namespace polder::memory
