// How much of a memory bufalloc can use when what is reserved is limited, and not only what is used: with regions that double, as host
// memory has them, and with one region that grows (decision page 61).
//
// region_growth [MIB OF THE MEMORY] [MIB OF THE LARGEST BLOCK]
//
// Blocks of random sizes are allocated until one is refused; then four random ones are freed, 2,000 times. Prints the share that is in use
// when a request is refused, and what is reserved for each byte in use when a little more than half of the memory is in use.
#include <memory/allocation_policy.h>
#include <memory/allocator.h>
#include <memory/region_source.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace polder::memory {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;
constexpr int refusals_max = 2000;

// Addresses without memory behind them, of which so many may be reserved at a time.
class Limited : public RegionSource {
public:
    explicit Limited(uint64_t bytes) : left_(bytes) {}
    Result<driver::Memory> reserve(ByteCount size) override {
        POLDER_TRY(take(size.value));
        return driver::Memory{DeviceAddress{std::exchange(next_, next_ + size.value)}, size.value};
    }
    void release(driver::Memory memory) override { left_ += memory.size; }
    ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override {
        return std::max({needed, reserved, ByteCount{64 * MiB}});
    }
    ByteCount available() const override { return ByteCount{left_}; }

protected:
    Result<void> take(uint64_t bytes) {
        if (bytes > left_)
            return fail(Status::mem_object_allocation_failure, "the memory is full");
        left_ -= bytes;
        return {};
    }

private:
    uint64_t left_;
    uint64_t next_ = uint64_t{1} << 40;
};

class Growing final : public Limited, private GrowableRegions {
public:
    using Limited::Limited;
    GrowableRegions* growable() override { return this; }

private:
    Alignment page() const override { return Alignment{uint64_t{64} << 10}; }
    Result<DeviceAddress> reserve_addresses(ByteCount) override { return DeviceAddress{uint64_t{1} << 40}; }
    void release_addresses(driver::Memory) override {}
    Result<void> commit(driver::Memory range) override { return take(range.size); }
    void decommit(driver::Memory range) override { release(range); }
};

void measure(const char* name, std::unique_ptr<Limited> made, uint64_t memory, uint64_t largest, bool only_use) {
    Limited& source = *made;
    AllocatorOptions options;
    options.space = SpaceId{1};
    if (only_use)
        options.limit = ByteCount{memory};
    const uint64_t all = source.available().value;
    const auto pool = make_allocator(parse_policy("backend:bufalloc", "").policy, std::move(made), options);
    std::mt19937_64 random(1);
    std::vector<Block> blocks;
    uint64_t live = 0;
    double shares = 0, reserved = 0;
    for (int refusals = 0; refusals < refusals_max;) {
        const uint64_t size = 1024 + random() % largest;
        if (const auto block = pool->allocate(ByteCount{size}, Alignment{128}, WhenFull::fail)) {
            blocks.push_back(*block);
            live += size;
            if (reserved == 0 && live > memory / 100 * 55)
                reserved = static_cast<double>(all - source.available().value) / static_cast<double>(live);
            continue;
        }
        ++refusals;
        shares += static_cast<double>(live) / static_cast<double>(memory);
        for (int i = 0; i < 4 && !blocks.empty(); ++i) {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            live -= blocks.back().size.value;
            pool->free(blocks.back(), {});
            blocks.pop_back();
        }
    }
    std::printf("%-32s %5.1f%% in use at refusals, %.2f bytes reserved for each in use\n", name,
                100 * shares / refusals_max, reserved);
    for (const Block& block : blocks)
        pool->free(block, {});
}

}  // namespace
}  // namespace polder::memory

int main(int count, char** arguments) {
    using namespace polder::memory;
    const uint64_t memory = (count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 512) * MiB;
    const uint64_t largest = (count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 8) * MiB;
    measure("doubling, reserved is limited", std::make_unique<Limited>(memory), memory, largest, false);
    measure("growing, reserved is limited", std::make_unique<Growing>(memory), memory, largest, false);
    measure("doubling, use is limited", std::make_unique<Limited>(uint64_t{1} << 46), memory, largest, true);
}
