// The memory layer over the CUDA driver and its fake library: with pinned host memory, transfers take no staging memory of the driver. Host
// memory is pinned from the beginning, or when it was copied often. The GPU's memory is mapped ahead of need.
#include "conformance.h"
#include "driver_named.h"

#include <memory/allocation_policy.h>
#include <memory/block_pool.h>
#include <memory/domain.h>
#include <memory/space.h>
#include <memory/storage.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fake_kernels.h>
#include <thread>
#include <vector>

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
    policy.pinned = memory::AllocationPolicy::Pinned::always;
    const uint64_t registered = calls_("cuMemHostRegister_v2");
    EXPECT_EQ(staging_of_a_round_trip(policy), 0u);
    EXPECT_GT(calls_("cuMemHostRegister_v2"), registered);
}

// One transfer there and one back are too few to register anything.
TEST_F(PinnedTransfers, OfPageableMemoryAreStaged) {
    using Pinned = memory::AllocationPolicy::Pinned;
    for (const Pinned pinned : {Pinned::never, Pinned::by_use}) {
        memory::AllocationPolicy policy;
        policy.pinned = pinned;
        queue_.reset();
        device_.reset();
        device_ = std::move(*driver_->open(0, cuda, ""));
        queue_ = *device_->create_queue(driver::QueueRole::compute);
        const uint64_t registered = calls_("cuMemHostRegister_v2");
        EXPECT_GT(staging_of_a_round_trip(policy), 0u);
        EXPECT_EQ(calls_("cuMemHostRegister_v2"), registered);
    }
}

// The memory of a GPU is mapped before a request needs it: who calls CUDA, and how often.
class GrowthAhead : public PinnedTransfers {
protected:
    // Buffers of 1 MiB, one after the other; returns how often this thread has granted access to new memory.
    uint64_t grants_of_this_thread(bool grow_ahead) {
        const auto here = fake_cuda::find<fake_cuda::CountCallsHere>("fake_cuda_calls_here");
        memory::AllocationPolicy policy;
        policy.grow_ahead = grow_ahead;
        const auto pool = memory::make_device_allocator(policy, *device_);
        auto& growing = static_cast<memory::BlockPool&>(*pool);
        const uint64_t before = here("cuMemSetAccess");
        std::vector<memory::Block> blocks;
        for (int i = 0; i < 100; ++i) {
            blocks.push_back(*pool->allocate(ByteCount{size}, Alignment{512}));
            growing.wait_for_growth_ahead();
        }
        const uint64_t grants = here("cuMemSetAccess") - before;
        for (const memory::Block& block : blocks)
            pool->free(block, {});
        pool->trim();
        EXPECT_EQ(pool->statistics().reserved.value, 0u);
        return grants;
    }
};

TEST_F(GrowthAhead, OnlyTheFirstStepIsTheLaunchingThreads) {
    const uint64_t before = calls_("cuMemSetAccess");
    EXPECT_EQ(grants_of_this_thread(true), 1u);
    EXPECT_GT(calls_("cuMemSetAccess") - before, 3u);
}

TEST_F(GrowthAhead, WithoutTheWishAllStepsAre) {
    const uint64_t before = calls_("cuMemSetAccess");
    const uint64_t grants = grants_of_this_thread(false);
    EXPECT_EQ(grants, calls_("cuMemSetAccess") - before);
    EXPECT_GT(grants, 10u);
}

// What CUDA refuses to the pool's thread is asked for again by the thread that needs it.
TEST_F(GrowthAhead, AStepThatCudaRefusesIsNoFailure) {
    const auto fail_next = fake_cuda::find<fake_cuda::FailNext>("fake_cuda_fail_next");
    for (const char* call : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
        const auto pool = memory::make_device_allocator({}, *device_);
        auto& growing = static_cast<memory::BlockPool&>(*pool);
        std::vector<memory::Block> blocks;
        blocks.push_back(*pool->allocate(ByteCount{size}, Alignment{512}));
        growing.wait_for_growth_ahead();
        fail_next(call, 2);  // out of memory
        for (int i = 0; i < 20; ++i) {
            const auto block = pool->allocate(ByteCount{size}, Alignment{512}, memory::WhenFull::fail);
            ASSERT_TRUE(block) << call;
            blocks.push_back(*block);
            growing.wait_for_growth_ahead();
        }
        for (const memory::Block& block : blocks)
            pool->free(block, {});
    }
}

TEST_F(GrowthAhead, NoMoreMemoryIsUsedThanTheParametersSay) {
    constexpr uint64_t MiB = uint64_t{1} << 20;
    const auto small = *driver_->open(0, SpaceId{2}, "memory=8M");
    EXPECT_EQ(small->info().memory_bytes, 8 * MiB);
    EXPECT_EQ(small->available_memory().value, 8 * MiB);
    const auto region = small->reserve_memory(ByteCount{6 * MiB});
    ASSERT_TRUE(region);
    EXPECT_EQ(small->available_memory().value, 2 * MiB);
    EXPECT_FALSE(small->reserve_memory(ByteCount{4 * MiB}));
    driver::VirtualMemory& pages = *small->virtual_memory();
    const uint64_t page = pages.page().value;
    const auto addresses = pages.reserve_addresses(ByteCount{4 * page});
    ASSERT_TRUE(addresses);
    EXPECT_FALSE(pages.commit({*addresses, 2 * page}));
    ASSERT_TRUE(pages.commit({*addresses, page}));
    EXPECT_EQ(small->available_memory().value, 2 * MiB - page);
    pages.decommit({*addresses, page});
    pages.release_addresses({*addresses, 4 * page});
    small->release_memory(*region);
    EXPECT_EQ(small->available_memory().value, 8 * MiB);
    EXPECT_EQ(device_->info().memory_bytes, (*driver_->open(1, SpaceId{3}, "memory=900T"))->info().memory_bytes);
}

// A sweep over twice a GPU's memory that changes a part of every buffer. While no stream executes anything, all of its commands are
// given to CUDA: evictions, the copies back to the host and the copies in wait for each other on the GPU alone.
TEST_F(PinnedTransfers, OfEvictionsWaitForNothingOnTheHost) {
    const auto hold = fake_cuda::find<fake_cuda::HoldStreams>("fake_cuda_hold_streams");
    constexpr uint64_t small_bytes = uint64_t{8} << 20;
    constexpr size_t count = 2 * small_bytes / size;
    const auto small = *driver_->open(1, SpaceId{1}, "memory=8M");
    const auto queue = *small->create_queue(driver::QueueRole::compute);
    memory::AllocationPolicy policy;
    policy.pinned = memory::AllocationPolicy::Pinned::always;
    const auto host = memory::Space::host(nullptr, policy);
    const auto space = memory::Space::of(*small);
    const std::array spaces{host.get(), space.get()};
    const auto domain = memory::Domain::create(spaces);
    const memory::Execution execution{*queue, cuda, {}};
    const Bytes contents = random_bytes(size, 3);
    std::vector<Ref<memory::Storage>> storages;
    for (size_t i = 0; i < count; ++i)
        storages.push_back(*memory::Storage::create(*domain, ByteCount{size}, {.initial_contents = contents.data()}));
    const auto sweep = [&](uint8_t pass) {
        for (const Ref<memory::Storage>& storage : storages) {
            EXPECT_TRUE(domain->reserve(*storage, cuda, queue.get()));
            const memory::Use all{storage.get(), {0, size}, Access::read_write};
            EXPECT_TRUE(domain->migrate(execution, {&all, 1}, cuda, memory::Domain::Content::kept));
            const std::array pattern{std::byte{pass}};
            EXPECT_TRUE(domain->fill(execution, *storage, {0, size / 2}, pattern));
        }
    };
    sweep(1);
    queue->wait(queue->marker({}).value);
    const uint64_t in = calls_("cuMemcpyHtoDAsync_v2");
    const uint64_t out = calls_("cuMemcpyDtoHAsync_v2");
    hold(true);
    std::atomic<bool> is_done{false};
    std::thread sweeping([&] {
        sweep(2);
        is_done = true;
    });
    for (int i = 0; i < 20'000 && !is_done; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(is_done) << "a command waits for a stream";
    EXPECT_GE(calls_("cuMemcpyHtoDAsync_v2") - in, count);
    EXPECT_GE(calls_("cuMemcpyDtoHAsync_v2") - out, count - 1);
    hold(false);
    sweeping.join();
    queue->wait(queue->marker({}).value);
    Bytes expected = contents;
    std::fill(expected.begin(), expected.begin() + size / 2, std::byte{2});
    for (const Ref<memory::Storage>& storage : storages) {
        const auto pin = domain->reserve_map(*storage);
        const auto mapped =
            domain->map(execution, *storage, memory::StorageRect::of({0, size}), memory::MapAccess::read);
        ASSERT_TRUE(mapped);
        mapped->queue->wait(mapped->value);
        EXPECT_EQ(0, std::memcmp(storage->map_address(), expected.data(), size));
    }
}

// A storage that the host and one or two GPUs change in turns.
class PinnedByUse : public testing::Test {
protected:
    static constexpr uint64_t bytes = uint64_t{16} << 20;

    void SetUp() override {
        calls_ = fake_cuda::find<fake_cuda::CountCalls>("fake_cuda_calls");
        ASSERT_NE(calls_, nullptr) << "this is not the fake libcuda";
        std::vector<memory::Space*> spaces{host_.get()};
        for (uint32_t i = 0; i < 2; ++i) {
            devices_[i] = std::move(*driver_->open(i, SpaceId{i + 1}, ""));
            queues_[i] = *devices_[i]->create_queue(driver::QueueRole::compute);
            spaces.push_back((spaces_[i] = memory::Space::of(*devices_[i])).get());
        }
        domain_ = memory::Domain::create(spaces);
    }
    [[nodiscard]] Ref<memory::Storage> make_storage() const {
        const Bytes zeros(bytes);
        return *memory::Storage::create(*domain_, ByteCount{bytes}, {.initial_contents = zeros.data()});
    }
    // The GPU writes a byte everywhere, and the host sees it.
    void turn(memory::Storage& storage, uint32_t gpu, uint8_t value) const {
        const memory::Execution execution{*queues_[gpu], SpaceId{gpu + 1}, {}};
        const std::array pattern{std::byte{value}};
        ASSERT_TRUE(domain_->fill(execution, storage, {0, bytes}, pattern));
        const auto pin = domain_->reserve_map(storage);
        const auto all = memory::StorageRect::of({0, bytes});
        const auto mapped = domain_->map(execution, storage, all, memory::MapAccess::read);
        ASSERT_TRUE(mapped);
        mapped->queue->wait(mapped->value);
        for (uint64_t i = 0; i < bytes; i += 4093)
            ASSERT_EQ(storage.map_address()[i], std::byte{value}) << i;
        ASSERT_EQ(storage.map_address()[bytes - 1], std::byte{value});
    }
    [[nodiscard]] uint64_t registrations() const {
        return calls_("cuMemHostRegister_v2") - calls_("cuMemHostUnregister");
    }
    // One call of CUDA for each registration: the copy is the GPU's alone, from the storage's memory.
    [[nodiscard]] bool is_copied_in_place(memory::Storage& storage, uint32_t gpu, uint64_t registered) const {
        const uint64_t copies = calls_("cuMemcpyDtoHAsync_v2");
        turn(storage, gpu, 99);
        return calls_("cuMemcpyDtoHAsync_v2") - copies <= registered;
    }
    // After enough calls of CUDA, the driver uses the registration. Its thread records that some time after the call.
    void wait_for_registrations(memory::Storage& storage, uint64_t before) const {
        for (int i = 0; i < 60000 && registrations() == before; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_GT(registrations(), before);
        for (uint32_t gpu = 0; gpu < 2; ++gpu) {
            int tries = 0;
            while (!is_copied_in_place(storage, gpu, registrations() - before) && ++tries < 500)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ASSERT_LT(tries, 500) << "GPU " << gpu;
        }
    }

    const std::unique_ptr<driver::Driver> driver_ = driver_named("cuda");
    std::array<std::unique_ptr<driver::Device>, 2> devices_;
    std::array<std::unique_ptr<driver::Queue>, 2> queues_;
    std::unique_ptr<memory::Space> host_ = memory::Space::host(nullptr);
    std::array<std::unique_ptr<memory::Space>, 2> spaces_;
    std::unique_ptr<memory::Domain> domain_;
    fake_cuda::CountCalls calls_ = nullptr;
};

TEST_F(PinnedByUse, WhatIsCopiedAgainAndAgainIsRegisteredForBothGpus) {
    const uint64_t before = registrations();
    const uint64_t calls = calls_("cuMemHostRegister_v2");
    {
        const auto storage = make_storage();
        for (uint8_t i = 0; i < 6; ++i)
            turn(*storage, i % 2, i);
        EXPECT_EQ(registrations(), before);
        for (uint8_t i = 0; i < 6; ++i)
            turn(*storage, i % 2, i + 10);
        wait_for_registrations(*storage, before);
        // From now on, all copies are direct.
        const uint64_t copies = calls_("cuMemcpyDtoHAsync_v2");
        const uint64_t pieces = registrations() - before;
        for (uint8_t i = 0; i < 8; ++i)
            turn(*storage, i % 2, i + 20);
        EXPECT_LE(calls_("cuMemcpyDtoHAsync_v2") - copies, 8 * pieces);
        // Once for both GPUs.
        EXPECT_EQ(calls_("cuMemHostRegister_v2") - calls, pieces);
    }
    domain_.reset();
    spaces_ = {};
    host_.reset();
    EXPECT_EQ(registrations(), before);
}

TEST_F(PinnedByUse, WhatCudaRefusesIsNotAskedForAgain_AndCopiesGoOn) {
    const auto fail_next = fake_cuda::find<fake_cuda::FailNext>("fake_cuda_fail_next");
    const uint64_t before = calls_("cuMemHostRegister_v2");
    const auto asked = [&] { return calls_("cuMemHostRegister_v2") - before; };
    const auto storage = make_storage();
    fail_next("cuMemHostRegister_v2", 2);  // out of memory
    for (uint8_t i = 0; i < 12; ++i)
        turn(*storage, 0, i);
    // For one GPU, which refuses, then for the other one, in whose context it is registered.
    for (int i = 0; i < 10000 && asked() < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (uint8_t i = 0; i < 20; ++i)
        turn(*storage, i % 2, i + 20);
    EXPECT_EQ(asked(), 2u);
}

}  // namespace
}  // namespace polder::conformance
