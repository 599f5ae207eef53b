// The conformance suite of the driver interface: what every driver must do, tested through include/polder/driver.h
// alone. A driver joins with one small file: POLDER_DRIVER_CONFORMANCE with a DriverUnderTest.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <polder/driver.h>
#include <string>
#include <vector>

namespace polder::conformance {

using driver::CopyOperation;
using driver::Timepoint;
using Bytes = std::vector<std::byte>;

struct DriverUnderTest {
    std::string name;
    std::unique_ptr<driver::Driver> (*make)();
    std::string parameters;  // as in POCL_<NAME><i>_PARAMETERS
    // Makes code of the device's format; null for devices that execute host functions.
    enum class Prints : uint8_t { no, yes };
    driver::KernelCode (*code_of)(const driver::HostCode& code, Prints prints) = nullptr;
    // True when other programs use memory of the device, too; null: never.
    bool (*shares_memory)() = nullptr;
    // False when the driver does not execute the tests' kernels, which are functions of the host; null: it does.
    bool (*executes_tests_kernels)() = nullptr;
};
using Prints = DriverUnderTest::Prints;

inline std::ostream& operator<<(std::ostream& out, const DriverUnderTest& driver) { return out << driver.name; }

// Bytes of a device's memory for the length of a test.
class DeviceBytes {
public:
    DeviceBytes(driver::Device& device, uint64_t size) : device_(device) {
        if (device.info().space.is_host()) {
            host_.resize(size + 128);
            const auto address = reinterpret_cast<uintptr_t>(host_.data());
            memory_ = {DeviceAddress{(address + 127) & ~uintptr_t{127}}, size};
            return;
        }
        auto reserved = device.reserve_memory(ByteCount{size});
        EXPECT_TRUE(reserved.has_value()) << "no device memory for " << size << " bytes";
        if (reserved)
            memory_ = *reserved;
    }
    DeviceBytes(const DeviceBytes&) = delete;
    DeviceBytes& operator=(const DeviceBytes&) = delete;
    ~DeviceBytes() {
        if (host_.empty() && memory_.size != 0)
            device_.release_memory(memory_);
    }
    [[nodiscard]] DeviceAddress at(uint64_t offset = 0) const { return memory_.address.plus(offset); }

private:
    driver::Device& device_;
    driver::Memory memory_;
    Bytes host_;
};

inline CopyOperation::End host_end(const void* pointer) {
    return {CopyOperation::Place::host, DeviceAddress::of(pointer), {}};
}
inline CopyOperation::End device_end(DeviceAddress address) { return {CopyOperation::Place::device, address, {}}; }

inline Bytes random_bytes(uint64_t size, uint32_t seed) {
    Bytes bytes(size);
    for (std::byte& byte : bytes) {
        seed = seed * 1664525 + 1013904223;
        byte = static_cast<std::byte>(seed >> 24);
    }
    return bytes;
}

class DriverConformance : public testing::TestWithParam<DriverUnderTest> {
protected:
    void SetUp() override {
        driver_ = GetParam().make();
        device_ = open(1);
        ASSERT_NE(device_, nullptr);
    }

    [[nodiscard]] std::unique_ptr<driver::Device> open(uint32_t space) {
        auto opened = driver_->open(next_index_++, SpaceId{space}, GetParam().parameters);
        EXPECT_TRUE(opened.has_value());
        return opened ? std::move(*opened) : nullptr;
    }
    // A second device in space 2; null where the machine has only one that the driver could open, and the test is to be skipped.
    [[nodiscard]] std::unique_ptr<driver::Device> open_another() {
        auto opened = driver_->open(next_index_, SpaceId{2}, GetParam().parameters);
        EXPECT_TRUE(opened.has_value() || driver_->count() == next_index_);
        ++next_index_;
        return opened ? std::move(*opened) : nullptr;
    }
    [[nodiscard]] driver::Device& device() { return *device_; }
    [[nodiscard]] std::unique_ptr<driver::Queue> make_queue(driver::QueueRole role = driver::QueueRole::compute) {
        return make_queue(*device_, role);
    }
    [[nodiscard]] static std::unique_ptr<driver::Queue>
    make_queue(driver::Device& device, driver::QueueRole role = driver::QueueRole::compute) {
        auto queue = device.create_queue(role);
        EXPECT_TRUE(queue.has_value());
        return std::move(*queue);
    }
    [[nodiscard]] static bool executes_on_host() { return GetParam().code_of == nullptr; }
    [[nodiscard]] static bool executes_tests_kernels() {
        return !GetParam().executes_tests_kernels || GetParam().executes_tests_kernels();
    }
    [[nodiscard]] static driver::KernelCode code_of(const driver::HostCode& code, Prints prints = Prints::no) {
        return executes_on_host() ? code : GetParam().code_of(code, prints);
    }
    [[nodiscard]] std::unique_ptr<driver::LoadedKernel> load(const driver::HostCode& code, Prints prints = Prints::no) {
        auto kernel = device_->load(code_of(code, prints));
        EXPECT_TRUE(kernel.has_value());
        return std::move(*kernel);
    }

    // What is available is known exactly only where no other program takes memory of the device.
    void expect_available(uint64_t bytes) {
        constexpr uint64_t of_others = uint64_t{256} << 20;
        const uint64_t available = device_->available_memory().value;
        if (GetParam().shares_memory && GetParam().shares_memory())
            EXPECT_TRUE(available + of_others >= bytes && bytes + of_others >= available)
                << available << " bytes instead of about " << bytes;
        else
            EXPECT_EQ(available, bytes);
    }

    static Timepoint upload(driver::Queue& queue, DeviceAddress to, const void* from, uint64_t size,
                            driver::Waits waits = {}) {
        return queue.copy({host_end(from), device_end(to), {size, 1, 1}}, {waits});
    }
    static Timepoint download(driver::Queue& queue, void* to, DeviceAddress from, uint64_t size,
                              driver::Waits waits = {}) {
        return queue.copy({device_end(from), host_end(to), {size, 1, 1}}, {waits});
    }
    static void wait(Timepoint timepoint) { timepoint.queue->wait(timepoint.value); }

private:
    std::unique_ptr<driver::Driver> driver_;
    std::unique_ptr<driver::Device> device_;
    uint32_t next_index_ = 0;
};

// What holds for every driver, also for one that does nothing and for one that fails at everything.
class EveryDriver : public DriverConformance {};

#define POLDER_DRIVER_CONFORMANCE(Name, ...)                                                                           \
    INSTANTIATE_TEST_SUITE_P(Name, DriverConformance, __VA_ARGS__, testing::PrintToStringParamName());                 \
    INSTANTIATE_TEST_SUITE_P(Name, EveryDriver, __VA_ARGS__, testing::PrintToStringParamName())

// Host functions for Queue::call.
struct AppendNumber {
    std::vector<int>* numbers;
    int number;
    static void run(void* data) {
        auto& me = *static_cast<AppendNumber*>(data);
        me.numbers->push_back(me.number);
    }
};

// A host operation that blocks until it is opened.
class Gate {
public:
    static void pass(void* data) {
        auto& gate = *static_cast<Gate*>(data);
        gate.reached_.store(true);
        gate.reached_.notify_all();
        gate.open_.wait(false);
    }
    void open() {
        open_.store(true);
        open_.notify_all();
    }
    void wait_until_reached() { reached_.wait(false); }

private:
    std::atomic<bool> open_{false};
    std::atomic<bool> reached_{false};
};

}  // namespace polder::conformance
