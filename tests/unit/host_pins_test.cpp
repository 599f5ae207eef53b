// Pinned host memory: each region is registered once with each device, and removed before it is unmapped.
#include "allocation/host_pins.h"
#include "space/space_impl.h"

#include <memory/allocation_policy.h>
#include <memory/allocator.h>
#include <memory/domain.h>
#include <memory/storage.h>

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <string_view>
#include <vector>

namespace polder::memory {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;

class RecordedRegions final : public driver::HostRegions {
public:
    Result<void> add(std::span<std::byte> region) override {
        ++adds;
        if (refuses)
            return fail(Status::mem_object_allocation_failure, "too much");
        for (const std::span<std::byte> other : held)
            EXPECT_TRUE(region.data() + region.size() <= other.data() || other.data() + other.size() <= region.data());
        held.push_back(region);
        return {};
    }
    void remove(std::span<std::byte> region) override {
        const auto found =
            std::ranges::find(held, region.data(), [](std::span<std::byte> known) { return known.data(); });
        ASSERT_NE(found, held.end()) << "was not added";
        EXPECT_EQ(found->size(), region.size());
        region[0] = region[region.size() - 1] = std::byte{1};  // still mapped
        held.erase(found);
    }
    [[nodiscard]] bool contains(const Block& block) const {
        return std::ranges::any_of(held, [&](std::span<std::byte> region) {
            const auto* const begin = static_cast<const std::byte*>(block.address.host());
            return region.data() <= begin && begin + block.size.value <= region.data() + region.size();
        });
    }

    std::vector<std::span<std::byte>> held;
    uint64_t adds = 0;
    bool refuses = false;
};

class Pinned : public testing::TestWithParam<const char*> {
protected:
    [[nodiscard]] std::unique_ptr<Allocator> pool() {
        const ParsedPolicy parsed = parse_policy(GetParam(), "test");
        EXPECT_TRUE(parsed.warning.empty()) << parsed.warning;
        EXPECT_EQ(parsed.policy.pinned, AllocationPolicy::Pinned::always);
        return make_host_allocator(parsed.policy, nullptr, {.always = &pins_});
    }
    static Block take(Allocator& pool, uint64_t bytes) {
        const auto block = pool.allocate(ByteCount{bytes}, Alignment{128});
        EXPECT_TRUE(block);
        return block.value_or(Block{});
    }
    RecordedRegions first_, second_;
    HostPins pins_;
};

TEST_P(Pinned, BlocksAreInRegionsOfEveryDevice_AlsoOfOneThatComesLater) {
    {
        const auto pool = this->pool();
        pins_.add_device(first_);
        std::vector<Block> blocks;
        for (const uint64_t bytes : {uint64_t{1000}, 3 * MiB, 40 * MiB})
            blocks.push_back(take(*pool, bytes));
        const uint64_t adds = first_.adds;
        EXPECT_GT(adds, 0u);
        pins_.add_device(second_);
        pins_.add_device(first_);
        EXPECT_EQ(first_.adds, adds) << "a region is registered once";
        EXPECT_EQ(second_.adds, adds);
        for (const Block& block : blocks) {
            EXPECT_TRUE(first_.contains(block));
            EXPECT_TRUE(second_.contains(block));
            pool->free(block, {});
        }
        for (int i = 0; i < 100; ++i)
            pool->free(take(*pool, 3 * MiB), {});
        EXPECT_EQ(first_.adds, adds) << "reuse registers nothing";
        EXPECT_TRUE(pool->validate());
    }
    EXPECT_TRUE(first_.held.empty());
    EXPECT_TRUE(second_.held.empty());
}

// Pages that a device knows must stay: a large block that is freed is not taken back in part.
TEST_P(Pinned, FreeMemoryStaysResidentUntilItsRegionGoes) {
    const auto pool = this->pool();
    pins_.add_device(first_);
    const Block block = take(*pool, 40 * MiB);
    std::fill_n(static_cast<std::byte*>(block.address.host()), block.size.value, std::byte{7});
    pool->free(block, {});
    EXPECT_GE(pool->resident().value, 40 * MiB);
    EXPECT_EQ(pool->statistics().cached.value, 0u) << "nothing that the system may take";
}

TEST_P(Pinned, ADeviceThatRefusesKeepsItsStaging_OthersGoOn) {
    {
        const auto pool = this->pool();
        first_.refuses = true;
        pins_.add_device(first_);
        pins_.add_device(second_);
        testing::internal::CaptureStderr();
        const Block small = take(*pool, MiB);
        const Block large = take(*pool, 40 * MiB);
        const std::string warning = testing::internal::GetCapturedStderr();
        EXPECT_NE(warning.find("refuses to pin"), std::string::npos);
        EXPECT_EQ(warning.find("refuses to pin"), warning.rfind("refuses to pin")) << "reported once";
        EXPECT_TRUE(second_.contains(small) && second_.contains(large));
        EXPECT_TRUE(first_.held.empty());
        pool->free(small, {});
        pool->free(large, {});
    }
    EXPECT_TRUE(second_.held.empty());
}

// A storage of which the host sees parts has addresses of its own: a part is registered when it is first used.
TEST(PinnedParts, AreRegisteredWhenTheyAreUsed_UntilTheStorageEnds) {
    AllocationPolicy policy;
    policy.pinned = AllocationPolicy::Pinned::always;
    RecordedRegions device;
    {
        const std::unique_ptr<Space> host = Space::host(nullptr, policy);
        static_cast<SpaceImpl&>(*host).pins()->add_device(device);
        const std::array spaces{host.get()};
        const std::unique_ptr<Domain> domain = Domain::create(spaces);
        const uint64_t page = SparseMemory::page().value;
        const Ref<Storage> storage = *Storage::create(*domain, ByteCount{16 * MiB + 1}, {});
        const auto pinned_after = [&](uint64_t begin, uint64_t end) {
            EXPECT_TRUE(domain->reserve(*storage, {begin, end}, host_space, nullptr));
            uint64_t bytes = 0;
            for (const std::span<std::byte> region : device.held)
                bytes += region.size();
            return bytes;
        };
        EXPECT_EQ(pinned_after(5 * MiB + 10, 5 * MiB + 11), page);
        EXPECT_EQ(pinned_after(5 * MiB, 7 * MiB), 2 * MiB);
        EXPECT_EQ(pinned_after(6 * MiB, 7 * MiB), 2 * MiB);
        EXPECT_EQ(device.adds, 2u) << "nothing is registered twice";
        EXPECT_EQ(pinned_after(1 * MiB, 9 * MiB), 8 * MiB);
        EXPECT_EQ(device.adds, 4u) << "the gaps on both sides";
        EXPECT_EQ(pinned_after(16 * MiB, 16 * MiB + 1), 8 * MiB + page);
    }
    EXPECT_TRUE(device.held.empty());
}

INSTANTIATE_TEST_SUITE_P(Policies, Pinned,
                         testing::Values("pinned:True", "backend:bucket,pinned:True", "backend:caching,pinned:True"),
                         [](const auto& tested) {
                             const std::string_view text = tested.param;
                             return std::string(text.starts_with("backend:") ? text.substr(8, text.find(',') - 8)
                                                                             : "bufalloc");
                         });

}  // namespace
}  // namespace polder::memory
