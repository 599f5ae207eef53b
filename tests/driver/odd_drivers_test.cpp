// Two drivers at the extremes of what the interface allows: one that does nothing and has no abilities, and one that has all abilities
// and fails at everything. Both keep their timelines, so what holds for every driver holds for them, and the memory layer works over them.
#include "conformance.h"

#include <memory/domain.h>
#include <memory/space.h>
#include <memory/storage.h>

#include <array>
#include <foreign/foreign_queue.h>

namespace polder::conformance {
namespace {

enum class Does : uint8_t { nothing, fail };

using OddOperation = devices::ForeignOperation<int, driver::LaunchOperation>;

// Completes an operation as soon as its waits are over.
class OddQueue final : public devices::ForeignQueue<OddOperation>, private driver::Fence {
public:
    explicit OddQueue(Does does) : ForeignQueue("odd"), does_(does) {}
    ~OddQueue() override { finish(); }

    Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override {
        return submit_work(operation, submission);
    }
    void wait(uint64_t value) override { static_cast<void>(push_up_to(value)); }
    [[nodiscard]] driver::Fence* fence() override { return does_ == Does::fail ? this : nullptr; }

private:
    [[nodiscard]] bool notify(driver::FenceWaiter&) override { return false; }
    [[nodiscard]] bool is_lost() const override { return false; }
    void lose_in_child() override {}
    [[nodiscard]] bool needs_host(const OddOperation&) const override { return false; }
    [[nodiscard]] bool order_after(Timepoint, OddOperation&) override { return false; }
    void push(OddOperation& operation) override POLDER_REQUIRES(mutex_) {
        if (!may_execute(operation))
            failures_.note(operation.value, Status::exec_status_error_for_events_in_wait_list);
        else if (does_ == Does::fail)
            failures_.note(operation.value, Status::out_of_resources);
        devices::set_times(operation.times, devices::now_ns());
        pushed_ = operation.value;
        publish(operation.value);
    }
    void flush_pushed() override POLDER_REQUIRES(mutex_) {}
    [[nodiscard]] bool needs_thread() const override POLDER_REQUIRES(mutex_) { return false; }
    void execute_on_host(OddOperation&) override {}
    void forget_pushed(Where) override POLDER_REQUIRES(mutex_) {}
    void work() override {
        const Lock lock(mutex_);
        while (!stopping_) {
            if (has_pending_work()) {
                pump_one();
                continue;
            }
            thread_sleeps_ = true;
            wake_.wait(mutex_);
            thread_sleeps_ = false;
        }
    }

    const Does does_;
    ForkMembership fork_membership_{*this};
};

class OddDevice : public driver::Device {
public:
    OddDevice(Does does, SpaceId space) : does_(does) {
        info_.name = "odd";
        info_.space = space;
    }
    [[nodiscard]] const driver::DeviceInfo& info() const override { return info_; }
    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount) override {
        return fail(Status::mem_object_allocation_failure);
    }
    void release_memory(driver::Memory) override {}
    [[nodiscard]] ByteCount available_memory() const override { return {}; }
    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole) override {
        return std::make_unique<OddQueue>(does_);
    }
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode&) override {
        return fail(Status::out_of_resources, "loads nothing");
    }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> create_sub_device(std::span<const uint32_t>) override {
        return fail(Status::device_partition_failed);
    }
    [[nodiscard]] uint64_t now_ns() const override { return devices::now_ns(); }

protected:
    const Does does_;
    driver::DeviceInfo info_;
};

class FailingDevice final : public OddDevice,
                            private driver::PeerCopy,
                            private driver::HostRegions,
                            private driver::VirtualMemory {
public:
    explicit FailingDevice(SpaceId space) : OddDevice(Does::fail, space) { info_.memory_bytes = uint64_t{1} << 30; }
    [[nodiscard]] driver::PeerCopy* peer_copy() override { return this; }
    [[nodiscard]] driver::HostRegions* host_regions() override { return this; }
    [[nodiscard]] driver::VirtualMemory* virtual_memory() override { return this; }

private:
    [[nodiscard]] std::optional<driver::PeerLink> link(SpaceId) const override { return std::nullopt; }
    [[nodiscard]] Timepoint copy(driver::Queue& queue, SpaceId, const CopyOperation& operation,
                                 const driver::Submission& submission) override {
        return queue.copy(operation, submission);
    }
    [[nodiscard]] Result<void> add(std::span<std::byte>) override { return fail(Status::out_of_resources); }
    void remove(std::span<std::byte>) override { ADD_FAILURE() << "a region that was never added is removed"; }
    [[nodiscard]] Alignment page() const override { return Alignment{4096}; }
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount) override {
        return DeviceAddress{uint64_t{1} << 44};
    }
    void release_addresses(driver::Memory) override {}
    [[nodiscard]] Result<void> commit(driver::Memory) override { return fail(Status::mem_object_allocation_failure); }
    void decommit(driver::Memory) override { ADD_FAILURE() << "memory that was never committed is taken"; }
};

class OddDriver final : public driver::Driver {
public:
    explicit OddDriver(Does does) : does_(does) {}
    [[nodiscard]] std::string_view name() const override { return "odd"; }
    [[nodiscard]] uint32_t count() const override { return 0; }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t, SpaceId space, std::string_view) override {
        if (does_ == Does::fail)
            return std::make_unique<FailingDevice>(space);
        return std::make_unique<OddDevice>(does_, host_space);
    }

private:
    const Does does_;
};

std::unique_ptr<driver::Driver> make_nothing() { return std::make_unique<OddDriver>(Does::nothing); }
std::unique_ptr<driver::Driver> make_failing() { return std::make_unique<OddDriver>(Does::fail); }

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DriverConformance);
INSTANTIATE_TEST_SUITE_P(Odd, EveryDriver,
                         testing::Values(DriverUnderTest{"nothing", make_nothing, ""},
                                         DriverUnderTest{"failing", make_failing, ""}),
                         testing::PrintToStringParamName());

TEST(FailingDevice, TheMemoryLayerReportsItAndKeepsTheBytes) {
    constexpr SpaceId space{1};
    constexpr uint64_t size = uint64_t{1} << 20;
    FailingDevice device{space};
    const auto queue = *device.create_queue(driver::QueueRole::compute);
    memory::AllocationPolicy policy;
    policy.backend = memory::AllocationPolicy::Backend::bucket;
    policy.pinned = memory::AllocationPolicy::Pinned::always;  // what the device refuses
    const auto host = memory::Space::host(nullptr, policy);
    const auto there = memory::Space::of(device);
    const std::array spaces{host.get(), there.get()};
    const auto domain = memory::Domain::create(spaces);
    const Bytes contents = random_bytes(size, 3);
    const auto storage = *memory::Storage::create(*domain, ByteCount{size}, {.initial_contents = contents.data()});
    const auto reserved = domain->reserve(*storage, space, queue.get());
    ASSERT_FALSE(reserved.has_value());
    EXPECT_EQ(reserved.error().status(), Status::mem_object_allocation_failure);
    const memory::Execution execution{*queue, space, {}};
    ASSERT_TRUE(domain->reserve_map(*storage));
    const auto mapped = domain->map(execution, *storage, memory::StorageRect::of({0, size}), memory::MapAccess::read);
    ASSERT_TRUE(mapped.has_value());
    mapped->queue->wait(mapped->value);
    EXPECT_EQ(0, std::memcmp(storage->map_address(), contents.data(), size));
}

}  // namespace polder::conformance
