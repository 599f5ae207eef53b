// Every allocation policy over a made-up source, for the typed suites.
#pragma once

#include "pool_fixture.h"

#include <memory/allocation_policy.h>
#include <memory/allocator.h>

namespace polder::memory::test {

struct Bufalloc {
    static constexpr const char* settings = "backend:bufalloc";
    static constexpr bool grows = false;
};
struct BufallocThatGrows {
    static constexpr const char* settings = "backend:bufalloc";
    static constexpr bool grows = true;
};
struct Caching {
    static constexpr const char* settings = "backend:caching";
    static constexpr bool grows = false;
};
struct CachingWithAllRules {
    static constexpr const char* settings = "backend:caching,max_split_size_mb:32,roundup_power2_divisions:4,"
                                            "garbage_collection_threshold:0.6";
    static constexpr bool grows = false;
};
struct CachingThatExpands {
    static constexpr const char* settings = "backend:caching,expandable_segments:True";
    static constexpr bool grows = true;
};
struct Bucket {
    static constexpr const char* settings = "backend:bucket";
    static constexpr bool grows = false;
};
using AllPolicies =
    ::testing::Types<Bufalloc, BufallocThatGrows, Caching, CachingWithAllRules, CachingThatExpands, Bucket>;

// An allocator of the settings over a fake source of space 1.
struct AllocatorFixture {
    AllocatorFixture(std::string_view settings, const FakeSource::Behaviour& behaviour) {
        auto made = std::make_unique<FakeSource>(behaviour);
        source = made.get();
        const ParsedPolicy parsed = parse_policy(settings, "settings");
        EXPECT_EQ(parsed.warning, "");
        AllocatorOptions options;
        options.space = SpaceId{1};
        pool = make_allocator(parsed.policy, std::move(made), options);
    }
    [[nodiscard]] Lease lease(uint64_t size, const LeaseTerms& terms = {}) const {
        const auto leased = pool->lease(LeaseRequest{ByteCount{size}, aligned}, terms);
        EXPECT_TRUE(leased) << size << ": " << (leased ? "" : leased.error().detail());
        return leased ? *leased : Lease{};
    }
    [[nodiscard]] Lease lease_on(FakeQueue& queue, uint64_t size) const {
        return lease(size, {LeaseTerms::Consumer::device, &queue, WhenFull::wait});
    }
    [[nodiscard]] Block take(uint64_t size) const { return lease(size).block; }
    [[nodiscard]] bool has_room(uint64_t size) const {
        const auto block = pool->allocate(ByteCount{size}, aligned, WhenFull::fail);
        if (block)
            pool->free(*block, {});
        return block.has_value();
    }
    [[nodiscard]] Allocator::Statistics now() const { return pool->statistics(); }

    FakeSource* source = nullptr;
    std::unique_ptr<Allocator> pool;
};

[[nodiscard]] inline ByteRange range_of(const Block& block) {
    return {block.address.value, block.address.value + std::max<uint64_t>(block.size.value, 1)};
}

}  // namespace polder::memory::test
