// Evictions while the host copies initial contents, and after transfers that have failed.
#include "support/eviction_fixture.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <sys/mman.h>
#include <thread>

namespace polder::memory {
namespace {

using test::device;
using test::Eviction;
using test::KiB;
using test::MemoryWorld;
using test::pattern;

// Bytes whose first access runs `meanwhile` on another thread, and waits for it.
class WatchedBytes {
public:
    explicit WatchedBytes(uint64_t size)
        : size_(size), bytes_(static_cast<std::byte*>(
                           mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~WatchedBytes() {
        if (thread_.joinable()) {
            state_ = State::accessed;
            thread_.join();
            sigaction(SIGSEGV, &before_, nullptr);
        }
        munmap(bytes_, size_);
    }
    WatchedBytes(const WatchedBytes&) = delete;
    WatchedBytes& operator=(const WatchedBytes&) = delete;
    [[nodiscard]] std::byte* data() const { return bytes_; }
    void watch(std::function<void()> meanwhile) {
        watched = this;
        state_ = State::untouched;
        struct sigaction action{};
        action.sa_handler = [](int) { watched->pause(); };
        sigaction(SIGSEGV, &action, &before_);
        mprotect(bytes_, size_, PROT_NONE);
        thread_ = std::thread{[this, meanwhile = std::move(meanwhile)] {
            while (state_ != State::accessed)
                std::this_thread::yield();
            meanwhile();
            state_ = State::done;
        }};
    }

private:
    enum class State : uint8_t { untouched, accessed, done };
    void pause() {
        state_ = State::accessed;
        while (state_ != State::done) {
        }
        mprotect(bytes_, size_, PROT_READ | PROT_WRITE);
    }
    static inline WatchedBytes* watched = nullptr;
    const uint64_t size_;
    std::byte* const bytes_;
    std::atomic<State> state_{State::untouched};
    struct sigaction before_{};
    std::thread thread_;
};

// clCreateBuffer with CL_MEM_COPY_HOST_PTR, and pipes: the buffer is found by evictions as soon as it has memory.
TEST_F(Eviction, ANewBufferKeepsItsMemoryWhileItsContentsAreCopied) {
    MemoryWorld world{{.separate_memories = 1, .memory_bytes = 256 * KiB}};
    const std::byte two{2};
    const auto other = world.storage(32 * KiB);
    world.space(0).pool().set_limit(ByteCount{64 * KiB});
    WatchedBytes contents{32 * KiB};
    std::ranges::copy(pattern(32 * KiB, 1), contents.data());
    bool had_room = true;
    std::byte* taken = nullptr;
    contents.watch([&] {
        had_room = world.domain->reserve(*world.storage(60 * KiB), host_space).has_value();
        if (world.domain->reserve(*other, host_space))
            taken = other->map_address();
    });
    const auto created = world.storage(32 * KiB, {.initial_contents = contents.data()});
    EXPECT_FALSE(had_room) << "the new buffer was evicted";
    ASSERT_TRUE(has_memory(world, *created, host_space));
    EXPECT_NE(created->map_address(), taken);
    EXPECT_EQ(read(world, *created), pattern(32 * KiB, 1));
    ASSERT_TRUE(world.domain->fill(world.on(0), *other, {0, 32 * KiB}, {&two, 1}));
    EXPECT_EQ(read(world, *created), pattern(32 * KiB, 1));
    // From now on it may be evicted, with its contents.
    EXPECT_TRUE(world.domain->reserve(*world.storage(60 * KiB), host_space));
    EXPECT_EQ(read(world, *created), pattern(32 * KiB, 1));
}

// The memory that a transfer in flight reads is given to another storage, which is written only behind the transfer.
TEST_F(Eviction, TheSourceOfATransferInFlightMayBeAVictim) {
    for (const test::Peers peers : {test::Peers::none, test::Peers::all}) {
        MemoryWorld world{{.separate_memories = 2, .peers = peers, .memory_bytes = 64 * KiB}};
        const auto source = written(world, 48 * KiB, 1);
        world.world.run();
        std::vector<std::byte> seen;
        world.kernel(world.on(2), {{source.get(), {0, 48 * KiB}, Access::read}},
                     [&](const auto& at) { seen.assign(at[0], at[0] + 48 * KiB); });
        ASSERT_TRUE(seen.empty());  // nothing has moved yet
        const auto other = written(world, 48 * KiB, 2);
        EXPECT_FALSE(has_memory(world, *source));
        EXPECT_TRUE(has_memory(world, *source, SpaceId{2}));
        world.world.run();
        EXPECT_EQ(seen, pattern(48 * KiB, 1));
        EXPECT_EQ(read(world, *other), pattern(48 * KiB, 2));
        EXPECT_EQ(read(world, *source), pattern(48 * KiB, 1));
        EXPECT_TRUE(source->validate());
    }
}

// A transfer to the host has failed, and no command has used the storage since: only the device has the right bytes.
TEST_F(Eviction, TheTargetOfAFailedTransferIsNoHolder) {
    MemoryWorld world{{.separate_memories = 1, .memory_bytes = 64 * KiB}};
    const auto storage = written(world, 32 * KiB, 1);
    world.world.run();
    world.world.on_copy = [](test::FakeQueue& queue) { queue.fail_next(); };
    use(world, *storage, Access::read, 0);
    world.world.on_copy = {};
    world.world.run();
    const auto other = written(world, 48 * KiB, 2);
    EXPECT_FALSE(has_memory(world, *storage));
    EXPECT_EQ(read(world, *storage), pattern(32 * KiB, 1));
    EXPECT_TRUE(storage->validate());
}

// The same when the transfer that should move the evicted bytes fails at once.
TEST_F(Eviction, BytesStayWhereTheyAreWhenTheyCannotBeWrittenBack) {
    MemoryWorld world{{.separate_memories = 1, .memory_bytes = 64 * KiB}};
    const auto storage = written(world, 32 * KiB, 1);
    world.world.run();
    world.world.on_copy = [](test::FakeQueue& queue) { queue.fail_next(); };
    world.world.copies_at_once = true;
    EXPECT_FALSE(world.domain->reserve(*world.storage(48 * KiB), device));
    world.world.on_copy = {};
    EXPECT_EQ(read(world, *storage), pattern(32 * KiB, 1));
    EXPECT_TRUE(storage->validate());
}

}  // namespace
}  // namespace polder::memory
