// Host memory that kernels use in place: it counts against the limit of host memory, and everything is undone where a step fails.
#include <memory/allocation_policy.h>
#include <memory/allocator.h>
#include <memory/in_place_heap.h>

#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace polder::memory {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;

class Registered final : public driver::HostRegions {
public:
    Result<void> add(std::span<std::byte> region) override {
        if (refuses)
            return fail(Status::mem_object_allocation_failure, "too much");
        bytes += region.size();
        return {};
    }
    void remove(std::span<std::byte> region) override { bytes -= region.size(); }

    uint64_t bytes = 0;
    bool refuses = false;
};

class InPlace : public testing::TestWithParam<const char*> {
protected:
    [[nodiscard]] uint64_t counted() const { return host_->statistics().live.value; }
    [[nodiscard]] std::byte* take(uint64_t size) {
        const auto block = heap_.allocate(ByteCount{size});
        return block ? *block : nullptr;
    }

    Registered first_, second_;
    const std::unique_ptr<Allocator> host_ = make_host_allocator(parse_policy(GetParam(), "test").policy, nullptr, {});
    InPlaceHeap heap_{*host_, {&first_, &second_}};
};

TEST_P(InPlace, RegionsCountAgainstTheLimitOfHostMemory) {
    host_->set_limit(ByteCount{20 * MiB});
    std::byte* const small = take(100);
    ASSERT_NE(small, nullptr);
    EXPECT_EQ(counted(), 4 * MiB);
    std::byte* const large = take(12 * MiB);
    ASSERT_NE(large, nullptr);
    EXPECT_EQ(counted(), 16 * MiB);
    EXPECT_EQ(take(8 * MiB), nullptr);
    EXPECT_FALSE(host_->allocate(ByteCount{8 * MiB}, Alignment{128}));  // a buffer gets no more either
    EXPECT_EQ(counted(), 16 * MiB);
    EXPECT_EQ(first_.bytes, 16 * MiB);
    heap_.free(large);
    EXPECT_EQ(counted(), 4 * MiB);
    std::byte* const other = take(8 * MiB);
    EXPECT_NE(other, nullptr);
    heap_.free(other);
    heap_.free(small);  // whose region is kept
    EXPECT_EQ(counted(), 4 * MiB);
}

TEST_P(InPlace, ARegionThatADeviceRefusesCountsForNothing) {
    second_.refuses = true;
    EXPECT_EQ(take(100), nullptr);
    EXPECT_EQ(counted(), 0U);
    EXPECT_EQ(first_.bytes, 0U);
}

TEST_P(InPlace, ARegionThatTheSystemRefusesCountsForNothing) {
    host_->set_limit(ByteCount{uint64_t{1} << 62});
    EXPECT_EQ(take(uint64_t{1} << 60), nullptr);
    EXPECT_EQ(counted(), 0U);
}

TEST(InPlaceHeap, NothingCountsWhenTheHeapHasEnded) {
    const std::unique_ptr<Allocator> host = make_host_allocator({}, nullptr, {});
    {
        Registered device;
        InPlaceHeap heap{*host, {&device}};
        const auto block = heap.allocate(ByteCount{100});
        ASSERT_TRUE(block);
        heap.free(*block);
    }
    EXPECT_EQ(host->statistics().live.value, 0U);
}

INSTANTIATE_TEST_SUITE_P(Policies, InPlace, testing::Values("", "backend:caching", "backend:bucket"),
                         [](const auto& param) {
                             const std::string_view text = param.param;
                             return std::string(text.empty() ? "bufalloc" : text.substr(8));
                         });

}  // namespace
}  // namespace polder::memory
