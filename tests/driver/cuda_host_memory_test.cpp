// Host memory and the CUDA driver, over the fake libcuda: regions that are registered are copied directly, by every GPU; pageable memory
// goes through pinned chunks.
#include "cuda_driver.h"
#include "kernels.h"

#include <array>
#include <atomic>
#include <checking/checking_driver.h>
#include <cstring>
#include <functional>
#include <span>
#include <thread>

namespace polder::conformance {
namespace {

class CudaRegions : public CudaDriver {
protected:
    static constexpr uint64_t size = 1 << 20;

    void SetUp() override {
        CudaDriver::SetUp();
        auto opened = driver_->open(1, SpaceId{2}, "");
        ASSERT_TRUE(opened.has_value()) << opened.error().detail();
        second_ = std::move(*opened);
    }
    static driver::HostRegions& regions(driver::Device& device) { return *device.host_regions(); }
    // There and back by one GPU; returns how many bytes of pinned memory the driver has allocated for it, but for the queue's counter.
    uint64_t staging_of_a_round_trip(driver::Device& device, Bytes& memory) {
        const auto queue = *device.create_queue(driver::QueueRole::compute);
        const DeviceBytes there(device, size);
        const uint64_t before = bytes_("cuMemHostAlloc");
        const Bytes expected = memory;
        queue->wait(upload(*queue, there.at(), memory).value);
        std::fill(memory.begin(), memory.end(), std::byte{0});
        const Timepoint back = download(*queue, memory, there.at());
        queue->wait(back.value);
        EXPECT_EQ(queue->status(back.value), Status::success);
        EXPECT_EQ(memory, expected);
        return bytes_("cuMemHostAlloc") - before;
    }

    const fake_cuda::CountBytes bytes_ = fake_cuda::find<fake_cuda::CountBytes>("fake_cuda_bytes");
    std::unique_ptr<driver::Device> second_;
    Bytes memory_ = random_bytes(size, 4);
};

TEST_F(CudaRegions, ThatAreRegisteredNeedNoStaging) {
    ASSERT_TRUE(regions(*device_).add(memory_).has_value());
    EXPECT_EQ(staging_of_a_round_trip(*device_, memory_), 0u);
    regions(*device_).remove(memory_);
    EXPECT_GT(staging_of_a_round_trip(*device_, memory_), 0u);
}

TEST_F(CudaRegions, AreRegisteredOnceForAllGpus) {
    const uint64_t before = calls_("cuMemHostRegister_v2");
    ASSERT_TRUE(regions(*device_).add(memory_).has_value());
    const auto added = regions(*second_).add(memory_);
    ASSERT_TRUE(added.has_value()) << added.error().detail();
    EXPECT_EQ(calls_("cuMemHostRegister_v2") - before, 1u);
    EXPECT_EQ(staging_of_a_round_trip(*device_, memory_), 0u);
    EXPECT_EQ(staging_of_a_round_trip(*second_, memory_), 0u);
    // The other GPU still has the region registered.
    regions(*device_).remove(memory_);
    EXPECT_EQ(staging_of_a_round_trip(*second_, memory_), 0u);
    regions(*second_).remove(memory_);
    EXPECT_GT(staging_of_a_round_trip(*second_, memory_), 0u);
    // And again.
    ASSERT_TRUE(regions(*second_).add(memory_).has_value());
    regions(*second_).remove(memory_);
}

// The checking driver knows which host memory a GPU uses in place.
TEST_F(CudaRegions, AreCheckedWhereTheyAreUsedInPlace) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto driver = devices::make_checking_driver(driver_named("cuda"));
    const auto device = std::move(*driver->open(1, SpaceId{3}, ""));
    ASSERT_TRUE(regions(*device).are_for_kernels());
    const auto queue = *device->create_queue(driver::QueueRole::compute);
    const std::byte pattern{9};
    const auto fill = [&] {
        return queue->fill({DeviceAddress::of(memory_.data()).plus(8), size - 8, {&pattern, 1}}, {});
    };
    const char* const violation = "a fill leaves the memory that was reserved";
    EXPECT_DEATH(static_cast<void>(fill()), violation);
    ASSERT_TRUE(regions(*device).add(memory_).has_value());
    const Timepoint filled = fill();
    queue->wait(filled.value);
    EXPECT_EQ(queue->status(filled.value), Status::success);
    EXPECT_TRUE(std::all_of(memory_.begin() + 8, memory_.end(), [&](std::byte each) { return each == pattern; }));
    EXPECT_DEATH(regions(*device).remove(std::span(memory_).first(size - 8)), "removal of host memory");
    regions(*device).remove(memory_);
    EXPECT_DEATH(static_cast<void>(fill()), violation);
}

// Closing a GPU gives back its context, and with that what the context has registered, unless the driver keeps it.
TEST_F(CudaRegions, StayWhenTheGpuThatRegisteredThemIsClosed) {
    ASSERT_TRUE(regions(*device_).add(memory_).has_value());
    ASSERT_TRUE(regions(*second_).add(memory_).has_value());
    device_.reset();
    EXPECT_EQ(staging_of_a_round_trip(*second_, memory_), 0u);
    second_.reset();
    // Nothing is registered any more.
    auto third = std::move(*driver_->open(0, SpaceId{3}, ""));
    EXPECT_TRUE(regions(*third).add(memory_).has_value());
}

TEST_F(CudaRegions, ThatOverlapOrThatCudaRefusesAreErrors) {
    ASSERT_TRUE(regions(*device_).add(memory_).has_value());
    EXPECT_FALSE(regions(*device_).add(memory_).has_value());
    EXPECT_FALSE(regions(*second_).add({memory_.data() + 4096, 4096}).has_value());
    EXPECT_FALSE(regions(*second_).add({memory_.data(), size / 2}).has_value());
    regions(*device_).remove(memory_);
    fail_next_("cuMemHostRegister_v2", 2);  // out of memory
    EXPECT_FALSE(regions(*device_).add(memory_).has_value());
    EXPECT_TRUE(regions(*second_).add(memory_).has_value());
}

// CUDA refuses a copy across the border of two registrations, so the driver divides it there.
TEST_F(CudaRegions, ThatAreNeighboursAreCopiedOneByOneWithoutStaging) {
    const std::span<std::byte> all = memory_;
    const std::array parts{all.first(size / 4), all.subspan(size / 4, size / 2), all.subspan(size / 4 * 3)};
    for (const std::span<std::byte> part : parts)
        ASSERT_TRUE(regions(*device_).add(part).has_value());
    const uint64_t copies = calls_("cuMemcpyHtoDAsync_v2");
    EXPECT_EQ(staging_of_a_round_trip(*device_, memory_), 0u);
    EXPECT_EQ(calls_("cuMemcpyHtoDAsync_v2") - copies, parts.size());
    // A copy over a gap between regions is staged as a whole.
    regions(*device_).remove(parts[1]);
    EXPECT_GT(staging_of_a_round_trip(*device_, memory_), 0u);
    regions(*device_).remove(parts[0]);
    regions(*device_).remove(parts[2]);
}

// Rows that lie apart are one call, so they are staged where they cross a border.
TEST_F(CudaRegions, ThatARectangleCrossesAreStaged) {
    const std::span<std::byte> all = memory_;
    ASSERT_TRUE(regions(*device_).add(all.first(size / 2)).has_value());
    ASSERT_TRUE(regions(*device_).add(all.subspan(size / 2)).has_value());
    const auto queue = make_queue();
    const DeviceBytes there(*device_, size);
    for (const uint64_t offset : {uint64_t{0}, size / 4}) {
        driver::CopyOperation::End host = host_end(memory_.data() + offset);
        host.layout.row_pitch = 2048;
        driver::CopyOperation::End device = device_end(there.at());
        device.layout.row_pitch = 1024;
        queue->wait(queue->copy({host, device, {1024, size / 2048 / 2, 1}}, {}).value);
        Bytes back(1024 * (size / 2048 / 2));
        const Timepoint done = download(*queue, back, there.at());
        queue->wait(done.value);
        EXPECT_EQ(queue->status(done.value), Status::success);
        for (uint64_t row = 0; row < size / 2048 / 2; ++row)
            ASSERT_EQ(std::memcmp(back.data() + 1024 * row, memory_.data() + offset + 2048 * row, 1024), 0) << row;
    }
    regions(*device_).remove(all.first(size / 2));
    regions(*device_).remove(all.subspan(size / 2));
}

TEST_F(CudaRegions, AreAddedAndRemovedBySeveralThreads) {
    std::atomic<int> refused{0};
    const auto use = [&](driver::Device& device) {
        for (int i = 0; i < 500; ++i) {
            refused += !regions(device).add(memory_).has_value();
            regions(device).remove(memory_);
        }
    };
    std::thread other([&] { use(*second_); });
    use(*device_);
    other.join();
    EXPECT_EQ(refused, 0);
}

// 256 MiB of pageable memory, by two threads in chunks of 4 MiB.
class CudaStaging : public CudaDriver {
protected:
    static constexpr uint64_t size = uint64_t{256} << 20;
    static constexpr uint64_t chunks = 64;
    static constexpr uint64_t chunks_ahead = 4;

    void SetUp() override {
        CudaDriver::SetUp();
        reopen("copy_threads=2,copy_chunk=4M,copy_chunks=2");
        hold_ = fake_cuda::find<fake_cuda::HoldStreams>("fake_cuda_hold_streams");
        bytes_ = fake_cuda::find<fake_cuda::CountBytes>("fake_cuda_bytes");
        memory_.resize(size);
        for (uint64_t i = 0; i < size; i += 4096)
            std::memcpy(memory_.data() + i, &i, sizeof i);
    }
    void reopen(const char* parameters) {
        device_.reset();
        device_ = std::move(*driver_->open(0, SpaceId{1}, parameters));
    }
    // While the GPU executes nothing, as many chunks of a copy are in flight as the limit allows.
    void expect_chunks_ahead(const char* function, const std::function<void()>& copy) {
        const uint64_t calls_before = calls_(function);
        const uint64_t bytes_before = bytes_(function);
        hold_(true);
        std::thread copying(copy);
        while (calls_(function) - calls_before < chunks_ahead)
            std::this_thread::yield();
        // The copy waits for the GPU now.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(calls_(function) - calls_before, chunks_ahead);
        hold_(false);
        copying.join();
        EXPECT_EQ(calls_(function) - calls_before, chunks);
        EXPECT_EQ(bytes_(function) - bytes_before, size);
    }

    fake_cuda::HoldStreams hold_ = nullptr;
    fake_cuda::CountBytes bytes_ = nullptr;
    Bytes memory_;
};

TEST_F(CudaStaging, PageableCopiesArePipelinedThroughPinnedChunks) {
    const auto queue = make_queue();
    const DeviceBytes there(*device_, size);
    const uint64_t pinned_before = bytes_("cuMemHostAlloc");
    expect_chunks_ahead("cuMemcpyHtoDAsync_v2", [&] { queue->wait(upload(*queue, there.at(), memory_).value); });
    Bytes out(size);
    expect_chunks_ahead("cuMemcpyDtoHAsync_v2", [&] { queue->wait(download(*queue, out, there.at()).value); });
    // Few chunks for both, whatever the size of the copy.
    EXPECT_LE(bytes_("cuMemHostAlloc") - pinned_before, 2 * chunks_ahead * (uint64_t{4} << 20));
    EXPECT_EQ(std::memcmp(out.data(), memory_.data(), size), 0);
}

// Copies of several queues share the chunks and the threads.
TEST_F(CudaStaging, CopiesOfSeveralQueuesAtOnceArriveWhole) {
    reopen("copy_threads=3,copy_chunk=64K,copy_chunks=3");
    constexpr uint64_t part = size / 16;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i)
        threads.emplace_back([this, i] {
            const auto queue = make_queue();
            const DeviceBytes there(*device_, part);
            const Bytes in(memory_.begin() + i * part, memory_.begin() + (i + 1) * part);
            Bytes out(part);
            static_cast<void>(upload(*queue, there.at(), in));
            queue->wait(download(*queue, out, there.at()).value);
            EXPECT_EQ(in, out);
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST_F(CudaStaging, APieceThatFailsFailsTheCopyAlone) {
    const auto queue = make_queue();
    memory_.resize(size / 8);
    const DeviceBytes there(*device_, memory_.size());
    Bytes out(memory_.size());
    for (const char* const function : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord"}) {
        fail_next_(function, 1);
        const bool is_in = function != std::string_view("cuMemcpyDtoHAsync_v2");
        const Timepoint failed = is_in ? upload(*queue, there.at(), memory_) : download(*queue, out, there.at());
        queue->wait(failed.value);
        // Without the record, the queue waits until the piece has been copied.
        const bool is_copy = function != std::string_view("cuEventRecord");
        EXPECT_EQ(queue->status(failed.value), is_copy ? Status::out_of_resources : Status::success) << function;
        static_cast<void>(upload(*queue, there.at(), memory_));
        const Timepoint back = download(*queue, out, there.at());
        queue->wait(back.value);
        EXPECT_EQ(queue->status(back.value), Status::success) << function;
        EXPECT_EQ(out, memory_) << function;
    }
}

TEST_F(CudaStaging, MalformedParametersAreReportedAndTheRestTaken) {
    testing::internal::CaptureStderr();
    reopen("copy_threads=0,copy_chunk=5,copy_chunks=2,colour=blue");
    const std::string output = testing::internal::GetCapturedStderr();
    for (const char* const part : {"POCL_CUDA0_PARAMETERS", "copy_threads=0", "copy_chunk=5", "colour=blue"})
        EXPECT_NE(output.find(part), std::string::npos) << output;
}

}  // namespace
}  // namespace polder::conformance
