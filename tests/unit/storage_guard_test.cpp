// Several threads on their own and on shared storages at once: a thread that holds a storage's lock is alone with it, and no thread
// waits for ever.
#include "support/stub_queue.h"

#include <memory/domain.h>
#include <memory/space.h>

#include <gtest/gtest.h>
#include <random>
#include <storage_guard.h>
#include <storage_impl.h>
#include <thread>

namespace polder::memory {
namespace {

constexpr int threads = 4;
constexpr int rounds = 4000;
constexpr uint64_t size = 256;

struct Shared {
    Ref<Storage> storage;
    uint64_t uses = 0;  // guarded by the storage's lock
};

class StorageGuardTest : public ::testing::Test {
protected:
    Shared make() { return {Storage::create(*domain, ByteCount{size}, {}).value()}; }
    // Each use is counted under the lock, without an atomic.
    bool launch(const std::vector<Shared*>& all) {
        std::vector<Use> uses;
        for (const Shared* one : all)
            uses.push_back({one->storage.get(), {0, size}, Access::read_write});
        static thread_local polder::test::StubQueue queue;
        return domain
            ->launch({queue, host_space, {}}, uses,
                     [&](driver::Waits, std::span<const DeviceAddress>) {
                         for (Shared* one : all)
                             ++one->uses;
                         return driver::Timepoint{};
                     })
            .has_value();
    }

private:
    std::unique_ptr<Space> host = Space::host(nullptr);
    Space* spaces[1] = {host.get()};

protected:
    std::unique_ptr<Domain> domain = Domain::create(spaces);
};

TEST_F(StorageGuardTest, UsesOfSharedStoragesExcludeEachOther) {
    std::vector<Shared> shared(6);
    for (Shared& one : shared)
        one = make();
    std::atomic<uint64_t> launched{0};
    const auto work = [&](uint32_t seed) {
        std::mt19937 random(seed);
        Shared own = make();
        uint64_t mine = 0;
        for (int i = 0; i < rounds; ++i) {
            std::vector<Shared*> all{&own};
            // Now and then a thread stays with its own for so long that locks move.
            for (uint32_t count = i / 100 % 2 ? random() % 4 : 0; count > 0; --count) {
                all.push_back(&shared[random() % shared.size()]);
                ++mine;
            }
            ASSERT_TRUE(launch(all));
        }
        EXPECT_EQ(own.uses, uint64_t{rounds});
        launched += mine;
    };
    std::vector<std::thread> all;
    for (uint32_t i = 0; i < threads; ++i)
        all.emplace_back(work, i);
    for (std::thread& thread : all)
        thread.join();
    uint64_t seen = 0;
    for (const Shared& one : shared) {
        seen += one.uses;
        EXPECT_TRUE(one.storage->validate());
    }
    EXPECT_EQ(seen, launched.load());
}

// A storage that one thread creates and another one uses from then on costs that thread no lock of others.
TEST_F(StorageGuardTest, TheLockMovesToTheThreadThatUsesTheStorage) {
    Shared one = make();
    ASSERT_TRUE(launch({&one}));
    const uint32_t before = static_cast<StorageImpl&>(*one.storage).storage_lock().number();
    uint32_t shared = before;
    uint32_t after = before;
    uint32_t own = before;
    std::thread([&] {
        Shared other = make();
        own = static_cast<StorageImpl&>(*other.storage).storage_lock().number();
        EXPECT_TRUE(launch({&one}));
        shared = static_cast<StorageImpl&>(*one.storage).storage_lock().number();
        for (int i = 0; i < 4; ++i)
            EXPECT_TRUE(launch({&one}));
        after = static_cast<StorageImpl&>(*one.storage).storage_lock().number();
    }).join();
    EXPECT_NE(own, before);
    EXPECT_NE(shared, before);
    EXPECT_NE(shared, own);
    EXPECT_EQ(after, own);
}

}  // namespace
}  // namespace polder::memory
