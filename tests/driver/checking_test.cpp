// The checking driver in the conformance suite, in front of other drivers, where nothing violates the contract, and its
// reaction to each violation.
#include "conformance.h"
#include "driver_named.h"
#include "kernels.h"

#include <array>
#include <checking/checking_driver.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make(std::string_view name) {
    return devices::make_checking_driver(driver_named(name));
}
std::unique_ptr<driver::Driver> make_cpu() { return make("cpu"); }
std::unique_ptr<driver::Driver> make_discrete() { return make("discrete"); }

class CheckingDriverDeathTest : public testing::Test {
protected:
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        driver_ = make("discrete");
        device_ = *driver_->open(0, SpaceId{1}, "memory=1M");
        queue_ = *device_->create_queue(driver::QueueRole::compute);
        memory_ = *device_->reserve_memory(ByteCount{4096});
    }
    void TearDown() override {
        queue_.reset();
        device_->release_memory(memory_);
    }

    std::unique_ptr<driver::Driver> driver_;
    std::unique_ptr<driver::Device> device_;
    std::unique_ptr<driver::Queue> queue_;
    driver::Memory memory_;
    Bytes host_ = Bytes(8192);
};

TEST_F(CheckingDriverDeathTest, ACopyBeyondReservedMemory) {
    EXPECT_DEATH(static_cast<void>(
                     queue_->copy({host_end(host_.data()), device_end(memory_.address.plus(4000)), {200, 1, 1}}, {})),
                 "a copy leaves the memory that was reserved");
}

TEST_F(CheckingDriverDeathTest, ACopyWhoseRangesOverlap) {
    EXPECT_DEATH(static_cast<void>(queue_->copy(
                     {device_end(memory_.address), device_end(memory_.address.plus(50)), {100, 1, 1}}, {})),
                 "a copy's ranges overlap");
}

TEST_F(CheckingDriverDeathTest, AFillThatEndsWithinAPattern) {
    const std::array<std::byte, 4> pattern{};
    EXPECT_DEATH(static_cast<void>(queue_->fill({memory_.address, 10, pattern}, {})), "no multiple of its pattern's");
}

TEST_F(CheckingDriverDeathTest, AWaitForWhatWasNotSubmitted) {
    EXPECT_DEATH(queue_->wait(1), "a wait for an operation that was not submitted");
    const std::array waits{Timepoint{queue_.get(), 7}};
    EXPECT_DEATH(static_cast<void>(queue_->marker({waits})), "was not submitted before");
}

TEST_F(CheckingDriverDeathTest, AWorkGroupBeyondTheLimits) {
    const auto kernel = *device_->load(driver::HostCode{.function = CountVisits::run});
    const CountVisits arguments{memory_.address.value};
    driver::LaunchOperation operation = launch_of(*kernel, arguments);
    operation.global_size[0] = operation.local_size[0] = device_->info().max_work_group_size + 1;
    EXPECT_DEATH(static_cast<void>(queue_->launch(operation, {})), "a work-group exceeds the device's limits");
}

TEST_F(CheckingDriverDeathTest, MemoryThatIsReleasedTwice) {
    const driver::Memory more = *device_->reserve_memory(ByteCount{4096});
    device_->release_memory(more);
    EXPECT_DEATH(device_->release_memory(more), "release_memory of memory that was not reserved");
}

TEST_F(CheckingDriverDeathTest, VirtualMemoryThatIsUsedWrongly) {
    driver::VirtualMemory& memory = *device_->virtual_memory();
    const uint64_t page = memory.page().value;
    const DeviceAddress base = *memory.reserve_addresses(ByteCount{4 * page});
    ASSERT_TRUE(memory.commit({base, 2 * page}));
    EXPECT_DEATH(static_cast<void>(memory.commit({base.plus(page), 2 * page})), "commit of addresses that have memory");
    EXPECT_DEATH(static_cast<void>(memory.commit({base.plus(3 * page), 2 * page})), "that were not reserved");
    EXPECT_DEATH(memory.decommit({base.plus(page), 2 * page}), "decommit of addresses that have no memory");
    EXPECT_DEATH(memory.release_addresses({base, 4 * page}), "release_addresses of committed addresses");
    const std::byte zero{};
    EXPECT_DEATH(static_cast<void>(queue_->fill({base.plus(2 * page), 1, {&zero, 1}}, {})), "");
    memory.decommit({base, 2 * page});
    memory.release_addresses({base, 4 * page});
}

TEST_F(CheckingDriverDeathTest, AQueueThatIsDestroyedWhileItHasWork) {
    EXPECT_DEATH(
        {
            static Gate gate;
            static_cast<void>(queue_->call({Gate::pass, &gate}, {}));
            queue_.reset();
        },
        "a queue is destroyed while it has work");
}

}  // namespace

POLDER_DRIVER_CONFORMANCE(Checked,
                          testing::Values(DriverUnderTest{"cpu", make_cpu, ""},
                                          DriverUnderTest{"discrete", make_discrete, "memory=128M"},
                                          DriverUnderTest{"mapped", make_discrete, "memory=64M,unified=mapped"}));

}  // namespace polder::conformance
