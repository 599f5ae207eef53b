// The memory layer over the CUDA driver and its fake library: with pinned host memory, transfers take no staging memory of the driver.
#include "conformance.h"
#include "driver_named.h"

#include <memory/domain.h>
#include <memory/space.h>
#include <memory/storage.h>

#include <array>
#include <fake_kernels.h>

namespace polder::conformance {
namespace {

constexpr uint64_t size = uint64_t{1} << 20;
constexpr SpaceId cuda{1};

class PinnedTransfers : public testing::Test {
protected:
    void SetUp() override {
        driver_ = driver_named("cuda");
        calls_ = fake_cuda::find<fake_cuda::CountCalls>("fake_cuda_calls");
        ASSERT_NE(calls_, nullptr) << "this is not the fake libcuda";
        auto opened = driver_->open(0, cuda, "");
        ASSERT_TRUE(opened.has_value()) << opened.error().detail();
        device_ = std::move(*opened);
        queue_ = *device_->create_queue(driver::QueueRole::compute);
        const uint64_t before = calls_("cuMemHostAlloc");
        static_cast<void>(*device_->create_queue(driver::QueueRole::transfer_in));
        allocations_of_a_queue_ = calls_("cuMemHostAlloc") - before;
    }
    // There and back; returns how often the driver has allocated pinned memory of its own, but for the two transfer queues.
    uint64_t staging_of_a_round_trip(const memory::AllocationPolicy& policy) {
        const auto host = memory::Space::host(nullptr, policy);
        const auto space = memory::Space::of(*device_);
        const std::array spaces{host.get(), space.get()};
        const auto domain = memory::Domain::create(spaces);
        const Bytes contents = random_bytes(size, 3);
        const auto storage = *memory::Storage::create(*domain, ByteCount{size}, {.initial_contents = contents.data()});
        const uint64_t before = calls_("cuMemHostAlloc");
        const memory::Execution execution{*queue_, cuda, {}};
        const memory::Use use{storage.get(), {0, size}, Access::read_write};
        EXPECT_TRUE(domain->reserve(*storage, cuda, queue_.get()));
        const auto there = domain->migrate(execution, {&use, 1}, cuda, memory::Domain::Content::kept);
        EXPECT_TRUE(there);
        // Only the second half changes on the device, so that both directions are seen in the bytes.
        const std::array pattern{std::byte{9}};
        EXPECT_TRUE(domain->fill(execution, *storage, {size / 2, size}, pattern));
        const auto pin = domain->reserve_map(*storage);
        const auto mapped =
            domain->map(execution, *storage, memory::StorageRect::of({0, size}), memory::MapAccess::read);
        EXPECT_TRUE(mapped);
        mapped->queue->wait(mapped->value);
        Bytes expected = contents;
        std::fill(expected.begin() + size / 2, expected.end(), std::byte{9});
        EXPECT_EQ(0, std::memcmp(storage->map_address(), expected.data(), size));
        return calls_("cuMemHostAlloc") - before - 2 * allocations_of_a_queue_;
    }

    std::unique_ptr<driver::Driver> driver_;
    std::unique_ptr<driver::Device> device_;
    std::unique_ptr<driver::Queue> queue_;
    fake_cuda::CountCalls calls_ = nullptr;
    uint64_t allocations_of_a_queue_ = 0;
};

TEST_F(PinnedTransfers, OfAPinnedBucketAreNotStaged) {
    memory::AllocationPolicy policy;
    policy.backend = memory::AllocationPolicy::Backend::bucket;
    policy.pinned = true;
    const uint64_t registered = calls_("cuMemHostRegister_v2");
    EXPECT_EQ(staging_of_a_round_trip(policy), 0u);
    EXPECT_GT(calls_("cuMemHostRegister_v2"), registered);
}

TEST_F(PinnedTransfers, OfPageableMemoryAreStaged) {
    const uint64_t registered = calls_("cuMemHostRegister_v2");
    EXPECT_GT(staging_of_a_round_trip({}), 0u);
    EXPECT_EQ(calls_("cuMemHostRegister_v2"), registered);
}

}  // namespace
}  // namespace polder::conformance
