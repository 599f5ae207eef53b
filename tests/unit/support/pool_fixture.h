// A pool over made-up memory and queues that move when a test says so.
#pragma once

#include "allocation/range_set.h"
#include "no_memory.h"
#include "stub_queue.h"

#include <memory/block_pool.h>

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace polder::memory::test {

inline constexpr uint64_t KiB = 1024;
inline constexpr uint64_t MiB = 1024 * KiB;
inline constexpr uint64_t page_of_source = 2 * MiB;
inline constexpr Alignment aligned{128};

// Returns ranges of a made-up address space, which have no memory.
class FakeSource final : public RegionSource, public GrowableRegions {
public:
    struct Behaviour {
        uint64_t capacity = 1024 * MiB;
        uint64_t region = 0;  // preferred; 0: just what is needed
        bool discards = false;
        bool grows = false;  // offers addresses
        bool is_slow = false;  // commits are
        uint64_t first_address = uint64_t{1} << 40;
    };
    explicit FakeSource(const Behaviour& behaviour) : behaviour_(behaviour), next_(behaviour.first_address) {}

    Result<driver::Memory> reserve(ByteCount size) override {
        called("reserve");
        const polder::test::NoFailures needs_memory;
        ++reserves;
        if (size > available())
            return fail(Status::mem_object_allocation_failure, "the device is full");
        const driver::Memory memory{DeviceAddress{next_}, size.value};
        next_ += size.value + MiB;
        reserved += size.value;
        backed_.insert(bytes_of(memory));
        return memory;
    }
    void release(driver::Memory memory) override {
        called("release");
        const polder::test::NoFailures needs_memory;
        ++releases;
        reserved -= memory.size;
        backed_.erase(bytes_of(memory));
    }
    ByteCount preferred_size(ByteCount needed, ByteCount) const override {
        return std::max(needed, ByteCount{behaviour_.region});
    }
    ByteCount available() const override {
        called("available");
        return ByteCount{behaviour_.capacity - reserved};
    }
    void discard(driver::Memory range) override {
        called("discard");
        discarded += range.size;
    }
    void prepare(driver::Memory range) override { prepared += range.size; }
    bool discards() const override { return behaviour_.discards; }

    GrowableRegions* growable() override { return behaviour_.grows ? this : nullptr; }

    Alignment page() const override { return Alignment{page_of_source}; }
    bool is_slow() const override { return behaviour_.is_slow; }
    Result<DeviceAddress> reserve_addresses(ByteCount size) override {
        called("reserve_addresses");
        const polder::test::NoFailures needs_memory;
        ++address_ranges;
        next_ = page().round_up(next_);
        const DeviceAddress address{next_};
        next_ += size.value + MiB;
        return address;
    }
    void release_addresses(driver::Memory) override { --address_ranges; }
    Result<void> commit(driver::Memory range) override {
        called("commit");
        const polder::test::NoFailures needs_memory;
        EXPECT_TRUE(page().divides(range.address.value) && page().divides(range.size));
        ++commits;
        if (range.size > available().value)
            return fail(Status::mem_object_allocation_failure, "the device is full");
        reserved += range.size;
        EXPECT_FALSE(has_memory(range, Part::any)) << "committed twice";
        backed_.insert(bytes_of(range));
        return {};
    }
    void decommit(driver::Memory range) override {
        called("decommit");
        const polder::test::NoFailures needs_memory;
        EXPECT_TRUE(has_memory(range, Part::all)) << "nothing to decommit";
        reserved -= range.size;
        decommitted += range.size;
        backed_.erase(bytes_of(range));
    }
    // Whether memory is behind the range.
    enum class Part { any, all };
    [[nodiscard]] bool has_memory(driver::Memory range, Part part) const {
        uint64_t missing = 0;
        backed_.for_each_missing(bytes_of(range), [&](ByteRange hole) { missing += hole.size(); });
        return part == Part::all ? missing == 0 : missing < range.size;
    }
    [[nodiscard]] bool has_memory(const Block& block) const {
        return has_memory({block.address, std::max<uint64_t>(block.size.value, 1)}, Part::all);
    }

    // Called with the function's name.
    std::function<void(const char*)> on_call;
    void called(const char* function) const {
        if (on_call)
            on_call(function);
    }

    uint64_t reserved = 0;
    uint64_t decommitted = 0;
    uint64_t discarded = 0;
    uint64_t prepared = 0;
    int reserves = 0;
    int releases = 0;
    int commits = 0;
    int address_ranges = 0;

private:
    [[nodiscard]] static ByteRange bytes_of(driver::Memory range) {
        return ByteRange::at(range.address.value, ByteCount{range.size});
    }

    Behaviour behaviour_;
    uint64_t next_;
    RangeSet backed_;
};

// A timeline that advances when the test says so, or when a thread waits for it.
class FakeQueue final : public polder::test::StubQueue {
public:
    driver::Timepoint at(uint64_t value) { return {this, value}; }
    void complete(uint64_t value) { completed_.store(value, std::memory_order_release); }
    std::vector<uint64_t> waited;

    // Called by wait() before it returns.
    std::function<void()> on_wait;
    void wait(uint64_t value) override {
        waited.push_back(value);
        if (on_wait)
            on_wait();
        if (completed() < value)
            complete(value);
    }
};

// A pool over a fake source of space 1, which the tests look at.
struct Fixture {
    explicit Fixture(const FakeSource::Behaviour& behaviour, BlockPool::Options options = {}) {
        options.space = SpaceId{1};
        auto made = std::make_unique<FakeSource>(behaviour);
        source = made.get();
        pool = std::make_unique<BlockPool>(std::move(made), options);
    }
    [[nodiscard]] Block take(uint64_t size) const {
        auto block = pool->allocate(ByteCount{size}, aligned);
        EXPECT_TRUE(block) << size;
        return block ? *block : Block{};
    }
    [[nodiscard]] std::string refusal(uint64_t size, WhenFull when_full = WhenFull::wait) const {
        const auto block = pool->allocate(ByteCount{size}, aligned, when_full);
        EXPECT_FALSE(block);
        if (block)
            return "";
        EXPECT_EQ(block.error().status(), Status::mem_object_allocation_failure);
        return std::string(block.error().detail());
    }

    FakeSource* source = nullptr;
    std::unique_ptr<BlockPool> pool;
};

} // namespace polder::memory::test
