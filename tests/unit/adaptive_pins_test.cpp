// Host memory that is registered because of its use: which copies cause it, what happens to the pages, and a region that is
// released while the driver is called.
#include "../support/signals.h"
#include "allocation/adaptive_pins.h"
#include "allocation/sparse.h"
#include "space/space_impl.h"

#include <memory/allocation_policy.h>
#include <memory/domain.h>
#include <memory/storage.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace polder::memory {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;
constexpr uint64_t granule = AdaptivePins::granule_bytes;
constexpr uint64_t copies = AdaptivePins::copies_max;

class RecordedRegions final : public driver::HostRegions {
public:
    Result<void> add(std::span<std::byte> region) override {
        std::unique_lock lock(mutex_);
        ++adds_;
        EXPECT_TRUE(test::blocks_signals());
        changed_.notify_all();
        changed_.wait(lock, [this] { return !is_held_; });
        if (refuses)
            return fail(Status::mem_object_allocation_failure, "too much");
        for (const std::span<std::byte> other : held_)
            EXPECT_TRUE(region.data() + region.size() <= other.data() || other.data() + other.size() <= region.data());
        held_.push_back(region);
        return {};
    }
    void remove(std::span<std::byte> region) override {
        const std::lock_guard lock(mutex_);
        const auto found =
            std::ranges::find(held_, region.data(), [](std::span<std::byte> known) { return known.data(); });
        ASSERT_NE(found, held_.end()) << "was not added";
        EXPECT_EQ(found->size(), region.size());
        region[0] = region[region.size() - 1] = std::byte{1};  // still mapped
        held_.erase(found);
    }
    // While held, `add` does not return.
    void hold(bool held) {
        const std::lock_guard lock(mutex_);
        is_held_ = held;
        changed_.notify_all();
    }
    void wait_for_adds(uint64_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return adds_ >= count; });
    }
    [[nodiscard]] uint64_t adds() {
        const std::lock_guard lock(mutex_);
        return adds_;
    }
    [[nodiscard]] uint64_t bytes() {
        const std::lock_guard lock(mutex_);
        uint64_t sum = 0;
        for (const std::span<std::byte> region : held_)
            sum += region.size();
        return sum;
    }
    [[nodiscard]] bool covers(driver::Memory memory) {
        const std::lock_guard lock(mutex_);
        auto* const begin = static_cast<std::byte*>(memory.address.host());
        return std::ranges::any_of(held_, [&](std::span<std::byte> region) {
            return region.data() <= begin && begin + memory.size <= region.data() + region.size();
        });
    }

    bool refuses = false;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::span<std::byte>> held_;
    uint64_t adds_ = 0;
    bool is_held_ = false;
};

class PinnedByUse : public testing::Test {
protected:
    void SetUp() override {
        pins_.add_device(device_);
        region_ = *source_.reserve(ByteCount{64 * MiB});
    }
    void TearDown() override {
        if (region_.size != 0)
            release();
        EXPECT_EQ(device_.bytes(), 0u);
    }
    void release() {
        source_.release(region_);
        region_ = {};
    }
    [[nodiscard]] driver::Memory part(uint64_t begin, uint64_t size) const {
        return {region_.address.plus(begin), size};
    }
    void copy(driver::Memory memory, uint64_t times) {
        for (uint64_t i = 0; i < times; ++i)
            pins_.note_copy(memory, memory.size);
    }
    [[nodiscard]] std::byte& byte(uint64_t offset) const {
        return static_cast<std::byte*>(region_.address.host())[offset];
    }

    RecordedRegions device_;
    AdaptivePins pins_{ByteCount{48 * MiB}};
    AdaptiveRegionSource source_{pins_};
    driver::Memory region_;
};

TEST_F(PinnedByUse, CopiesOfADeviceThatIsShortCountMore) {
    const driver::Memory one = part(0, granule);
    for (uint64_t i = 0; i + 1 < copies / AdaptivePins::times_when_short; ++i)
        pins_.note_copy(one, granule, AdaptivePins::times_when_short);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 0u);
    pins_.note_copy(one, granule, AdaptivePins::times_when_short);
    pins_.wait_until_idle();
    EXPECT_TRUE(device_.covers(one));
}

TEST_F(PinnedByUse, WhatIsCopiedOftenIsRegisteredOnce_WithAllOfACopyInOnePiece) {
    const driver::Memory often = part(4 * MiB, 16 * MiB);
    copy(often, copies - 1);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 0u);
    copy(often, 1);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 1u);
    EXPECT_TRUE(device_.covers(often));
    copy(often, 100);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 1u);
    EXPECT_EQ(device_.bytes(), often.size);
}

// The ends of neither copy are at the ends of granules.
TEST_F(PinnedByUse, NeighboursThatShareAGranuleRegisterItOnce) {
    const driver::Memory first = part(1 * MiB + 512, 8 * MiB);
    const driver::Memory second = part(9 * MiB + 512, 8 * MiB);
    copy(first, 2 * copies);
    pins_.wait_until_idle();
    EXPECT_TRUE(device_.covers(first));
    copy(second, 2 * copies);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 2u);
    EXPECT_EQ(device_.bytes(), 18 * MiB);
}

TEST_F(PinnedByUse, SmallPiecesAreRegisteredByTheGranule_WhenAsMuchWasCopied) {
    const uint64_t size = 128 << 10;
    for (uint64_t i = 0; i < copies * granule / size; ++i) {
        EXPECT_EQ(device_.adds(), 0u) << i;
        copy(part(i % 16 * size, size), 1);
    }
    pins_.wait_until_idle();
    EXPECT_TRUE(device_.covers(part(0, granule)));
    // Too small to be counted.
    copy(part(10 * MiB, 4096), 100000);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 1u);
}

TEST_F(PinnedByUse, RegisteredPagesStayWhereTheyAre_OthersAreDiscarded) {
    copy(part(8 * MiB, 8 * MiB), copies);
    pins_.wait_until_idle();
    const std::array offsets{7 * MiB, 8 * MiB, 16 * MiB - 1, 16 * MiB, 40 * MiB};
    for (const uint64_t offset : offsets)
        byte(offset) = std::byte{7};
    source_.discard(part(6 * MiB, 20 * MiB));
    // Discarded pages are read as zeros.
    EXPECT_EQ(byte(7 * MiB), std::byte{0});
    EXPECT_EQ(byte(8 * MiB), std::byte{7});
    EXPECT_EQ(byte(16 * MiB - 1), std::byte{7});
    EXPECT_EQ(byte(16 * MiB), std::byte{0});
    EXPECT_EQ(byte(40 * MiB), std::byte{7});
    source_.discard(part(40 * MiB, 1 * MiB));
    EXPECT_EQ(byte(40 * MiB), std::byte{0});
}

TEST_F(PinnedByUse, PagesThatAreBeingRegisteredAreNotDiscarded_AndTheirRegionWaits) {
    device_.hold(true);
    copy(part(0, 8 * MiB), copies);
    device_.wait_for_adds(1);
    byte(0) = std::byte{7};
    // Neither this nor a copy waits for the driver.
    source_.discard(part(0, 8 * MiB));
    copy(part(0, 8 * MiB), 1);
    EXPECT_EQ(byte(0), std::byte{7});
    std::thread other([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        device_.hold(false);
    });
    release();  // the device would touch memory that is not mapped any more
    other.join();
    EXPECT_EQ(device_.bytes(), 0u);
}

TEST_F(PinnedByUse, ARegionThatGoesTakesWhatWasRequestedWithIt) {
    const driver::Memory other = *source_.reserve(ByteCount{8 * MiB});
    device_.hold(true);
    copy(part(0, 8 * MiB), copies);
    device_.wait_for_adds(1);
    copy(other, copies);
    source_.release(other);
    device_.hold(false);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 1u);
}

TEST_F(PinnedByUse, NoMoreThanTheShareIsRegistered_AndWhatGoesMakesRoom) {
    copy(part(0, 40 * MiB), copies);
    copy(part(40 * MiB, 16 * MiB), copies);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.bytes(), 40 * MiB);
    release();
    region_ = *source_.reserve(ByteCount{64 * MiB});
    copy(part(40 * MiB, 16 * MiB), copies);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.bytes(), 16 * MiB);
}

TEST_F(PinnedByUse, ADeviceThatComesLaterGetsWhatIsRegistered) {
    copy(part(0, 8 * MiB), copies);
    pins_.wait_until_idle();
    RecordedRegions second;
    pins_.add_device(second);
    pins_.add_device(second);
    pins_.wait_until_idle();
    EXPECT_EQ(second.adds(), 1u);
    EXPECT_TRUE(second.covers(part(0, 8 * MiB)));
    EXPECT_EQ(device_.adds(), 1u);
    release();
    EXPECT_EQ(second.bytes(), 0u);
}

TEST_F(PinnedByUse, WhatIsRefusedStaysPageable_AndIsNotAskedForAgain) {
    device_.refuses = true;
    copy(part(0, 8 * MiB), 10 * copies);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 1u);
    byte(0) = std::byte{7};
    source_.discard(part(0, 8 * MiB));
    EXPECT_EQ(byte(0), std::byte{0});
    // It no longer counts against the limit of registered memory.
    device_.refuses = false;
    copy(part(16 * MiB, 48 * MiB), copies);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.bytes(), 48 * MiB);
}

TEST_F(PinnedByUse, ADeviceThatRefusesAgainAndAgainIsNotAskedAnyMore) {
    device_.refuses = true;
    for (uint64_t i = 0; i < 20; ++i) {
        copy(part(i * granule, granule), copies);
        pins_.wait_until_idle();
    }
    EXPECT_EQ(device_.adds(), 8u);
}

TEST_F(PinnedByUse, OtherMemoryIsIgnored) {
    std::vector<std::byte> other(16 * MiB);
    copy({DeviceAddress::of(other.data()), other.size()}, 10 * copies);
    // Beyond the end of the region.
    copy(part(60 * MiB, 8 * MiB), 10 * copies);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.adds(), 0u);
}

// In the child, the thread does not exist and the device is lost: regions are reserved and released, and nothing waits.
TEST_F(PinnedByUse, AChildThatIsForkedDuringARegistrationGoesOn) {
    device_.hold(true);
    copy(part(0, 8 * MiB), copies);
    device_.wait_for_adds(1);
    const pid_t child = fork();
    ASSERT_NE(child, -1);
    if (child == 0) {
        alarm(60);
        source_.discard(part(0, 8 * MiB));
        copy(part(16 * MiB, 8 * MiB), 10 * copies);
        pins_.add_device(device_);
        copy(part(16 * MiB, 8 * MiB), 10 * copies);
        // A thread would call the device by now.
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        source_.release(region_);
        const auto again = source_.reserve(ByteCount{8 * MiB});
        source_.release(*again);
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    device_.hold(false);
    pins_.wait_until_idle();
    EXPECT_EQ(device_.bytes(), 8 * MiB);
}

TEST_F(PinnedByUse, CopiesRegionsAndDiscardsOfSeveralThreadsDoNotMeet) {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i)
        threads.emplace_back([this, i] {
            for (int round = 0; round < 50; ++round) {
                const driver::Memory own = *source_.reserve(ByteCount{4 * MiB});
                copy(own, copies + 1);
                copy(part(i * 8 * MiB, 8 * MiB), 1);
                source_.discard({own.address, own.size});
                source_.discard(part(i * 8 * MiB, 8 * MiB));
                source_.release(own);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    pins_.wait_until_idle();
    EXPECT_EQ(device_.bytes(), 32 * MiB);
}

// A registration takes time; a region that is released meanwhile has to wait.
TEST_F(PinnedByUse, ALargeCopyIsRegisteredInPieces) {
    AdaptivePins pins{ByteCount{1024 * MiB}};
    pins.add_device(device_);
    AdaptiveRegionSource source{pins};
    const driver::Memory large = *source.reserve(ByteCount{256 * MiB});
    const driver::Memory copied{large.address.plus(3 * MiB), 200 * MiB};
    for (uint64_t i = 0; i < 2 * copies; ++i)
        pins.note_copy(copied, copied.size);
    pins.wait_until_idle();
    EXPECT_EQ(device_.adds(), 4u);
    EXPECT_EQ(device_.bytes(), 202 * MiB);
    for (uint64_t offset = 2 * MiB; offset < 194 * MiB; offset += 64 * MiB)
        EXPECT_TRUE(device_.covers({large.address.plus(offset), 64 * MiB})) << offset;
    source.release(large);
}

// --- stretches ---

TEST(PinnedStretches, AreRegisteredByTheirUse_AndNotKept) {
    RecordedRegions device;
    {
        AdaptivePins pins{ByteCount{64 * MiB}};
        pins.add_device(device);
        const auto pool = make_host_allocator({}, nullptr, {.by_use = &pins});
        SparseMemory sparse{*pool, &pins};
        for (int round = 0; round < 2; ++round) {
            auto stretch = std::move(*sparse.reserve(ByteCount{32 * MiB}));
            const driver::Memory used{stretch->address().plus(MiB), 9 * MiB};
            for (uint64_t i = 0; i < 2 * copies; ++i)
                pins.note_copy(used, used.size);
            pins.wait_until_idle();
            EXPECT_TRUE(device.covers(used));
            sparse.free(std::move(stretch), {});
            EXPECT_EQ(device.bytes(), 0u);
        }
    }
    EXPECT_EQ(device.bytes(), 0u);
}

// --- settings ---

TEST(PinnedSetting, IsAutomaticUnlessTheUserChooses) {
    using Policy = AllocationPolicy::Pinned;
    EXPECT_EQ(parse_policy("", "test").policy.pinned, Policy::by_use);
    EXPECT_EQ(parse_policy("pinned:True", "test").policy.pinned, Policy::always);
    EXPECT_EQ(parse_policy("pinned:False", "test").policy.pinned, Policy::never);
    EXPECT_EQ(parse_policy("pinned:auto", "test", parse_policy("pinned:True", "test").policy).policy.pinned,
              Policy::by_use);
    EXPECT_NE(parse_policy("pinned:perhaps", "test").warning.find("auto"), std::string::npos);
    AllocationPolicy policy;
    const auto is_automatic = [&] {
        return static_cast<SpaceImpl&>(*Space::host(nullptr, policy)).adaptive_pins() != nullptr;
    };
    EXPECT_EQ(is_automatic(), AdaptivePins::are_forks_safe());
    policy.pinned = Policy::never;
    EXPECT_FALSE(is_automatic());
}

}  // namespace
}  // namespace polder::memory
