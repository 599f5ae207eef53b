// Devices whose queues are stepped by hand, to test the order of operations deterministically.
//
// Nothing runs until the test says so: `FakeWorld::step` executes one operation whose waits are complete, chosen by the
// caller; so every order that a real machine could take can be taken. Device memory is an arena with addresses that
// are no host pointers; a wrong address fails the test. One thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <polder/driver.h>
#include <random>
#include <vector>

namespace polder::test {

class FakeWorld;
class FakeDevice;

class FakeQueue final : public driver::Queue {
public:
    FakeQueue(FakeWorld& world, FakeDevice& device);
    ~FakeQueue() override;

    [[nodiscard]] driver::Timepoint copy(const driver::CopyOperation& operation,
                                         const driver::Submission& submission) override;
    [[nodiscard]] driver::Timepoint fill(const driver::FillOperation& operation,
                                         const driver::Submission& submission) override;
    [[nodiscard]] driver::Timepoint launch(const driver::LaunchOperation&,
                                           const driver::Submission& submission) override {
        return submit(submission, [] {});
    }
    [[nodiscard]] driver::Timepoint call(const driver::HostOperation& operation,
                                         const driver::Submission& submission) override {
        return submit(submission, [operation] { operation.function(operation.data); });
    }
    [[nodiscard]] driver::Timepoint marker(const driver::Submission& submission) override {
        return submit(submission, [] {});
    }
    void flush() override {}
    void wait(uint64_t value) override;

    // Any work, for tests that play a kernel.
    driver::Timepoint submit(const driver::Submission& submission, std::function<void()> action);

    // While held back, a queue executes nothing, as behind work that depends on the application.
    void hold_back(bool held) { held_back_ = held; }
    // The operation that is submitted next fails when it is executed.
    void fail_next() { failing_ = submitted_ + 1; }
    // As a driver does: an operation that waits for one that has failed is not executed, and fails as well.
    [[nodiscard]] Status status(uint64_t value) const override {
        const auto found = failed_.find(value);
        return found == failed_.end() ? Status::success : found->second;
    }

    [[nodiscard]] bool is_ready() const;
    [[nodiscard]] size_t pending() const { return operations_.size(); }
    [[nodiscard]] uint64_t submitted() const { return submitted_; }
    void step();

private:
    struct Operation {
        std::vector<driver::Timepoint> waits;
        std::function<void()> action;
    };
    FakeWorld& world_;
    FakeDevice& device_;
    std::deque<Operation> operations_;
    uint64_t submitted_ = 0;
    uint64_t failing_ = 0;
    std::map<uint64_t, Status> failed_;
    bool held_back_ = false;
};

class FakeWorld {
public:
    explicit FakeWorld(uint64_t seed = 1) : random_(seed) {}
    std::mt19937_64& random() { return random_; }

    // Executes one operation of a queue chosen at random; false when none is ready.
    bool step() {
        std::vector<FakeQueue*> ready;
        for (FakeQueue* queue : queues_)
            if (queue->is_ready())
                ready.push_back(queue);
        if (ready.empty())
            return false;
        ready[random_() % ready.size()]->step();
        return true;
    }
    void step(uint64_t times) {
        while (times-- > 0 && step()) {
        }
    }
    // Executes everything; fails the test when operations wait for each other.
    void run() {
        while (step()) {
        }
        for (const FakeQueue* queue : queues_)
            ASSERT_EQ(queue->pending(), 0u) << "deadlock";
    }
    [[nodiscard]] size_t operations_executed() const { return executed_; }

    // Host memory that belongs to a device: a test fails when the host uses it, or the device uses what is not its own.
    void give_to_device(DeviceAddress address, uint64_t size) {
        take_from_device(address, size);
        device_owned_[address.value] = address.value + size;
    }
    void take_from_device(DeviceAddress address, uint64_t size) {
        const uint64_t begin = address.value;
        const uint64_t end = begin + size;
        std::map<uint64_t, uint64_t> rest;
        for (const auto& [first, last] : device_owned_) {
            if (first < std::min(last, begin))
                rest[first] = std::min(last, begin);
            if (std::max(first, end) < last)
                rest[std::max(first, end)] = last;
        }
        device_owned_ = std::move(rest);
    }
    [[nodiscard]] uint64_t device_owned(DeviceAddress address, uint64_t size) const {
        uint64_t bytes = 0;
        for (const auto& [first, last] : device_owned_)
            bytes += ByteRange{first, last}.intersect(ByteRange::at(address.value, ByteCount{size})).size();
        return bytes;
    }
    [[nodiscard]] const std::vector<FakeQueue*>& queues() const { return queues_; }
    // Called by each copy when it is submitted.
    std::function<void(FakeQueue&)> on_copy;
    // Called by each change of the owner of host memory when it is submitted.
    std::function<void(FakeQueue&)> on_owner_change;
    // Copies are executed when they are submitted, as by a device that is lost, whose operations fail at once.
    bool copies_at_once = false;

private:
    friend class FakeQueue;
    std::vector<FakeQueue*> queues_;
    std::mt19937_64 random_;
    size_t executed_ = 0;
    std::map<uint64_t, uint64_t> device_owned_;  // ends by beginning
};

inline DeviceAddress row_of(const driver::CopyOperation::End& end, uint64_t y, uint64_t z) {
    return end.address.plus(y * end.layout.row_pitch + z * end.layout.slice_pitch);
}

class FakeDevice final : public driver::Device, private driver::PeerCopy, private driver::UnifiedMemory {
public:
    struct Options {
        SpaceId space;
        uint64_t memory_bytes = uint64_t{1} << 20;
        SpaceSet peers;
        // When false, there are addresses without bytes, and copies move nothing.
        bool has_bytes = true;
        bool is_unified = false;  // it uses host memory too, after it was unmapped
        std::map<uint32_t, driver::PeerLink> links{};  // to peers, by space; one hop where none is given
    };
    FakeDevice(FakeWorld& world, const Options& options, std::vector<FakeDevice*>* all = nullptr)
        : world_(world), options_(options), all_(all) {
        info_.name = "fake";
        info_.space = options.space;
        if (!options.space.is_host())  // 0: as much as the machine has
            info_.memory_bytes = options.memory_bytes;
        if (!options.space.is_host() && options.has_bytes)
            arena_.resize(options.memory_bytes, std::byte{0xCD});
    }

    [[nodiscard]] const driver::DeviceInfo& info() const override { return info_; }
    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override {
        if (size.value > options_.memory_bytes - reserved_)
            return fail(Status::mem_object_allocation_failure);
        const driver::Memory memory{DeviceAddress{base() + reserved_}, size.value};
        reserved_ += size.value;
        return memory;
    }
    void release_memory(driver::Memory memory) override {
        if (memory.address.value + memory.size == base() + reserved_)
            reserved_ -= memory.size;
    }
    [[nodiscard]] ByteCount available_memory() const override { return ByteCount{options_.memory_bytes - reserved_}; }
    // From now on, as a device without resources.
    void refuse_queues() { refuses_queues_ = true; }
    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole) override {
        if (refuses_queues_)
            return fail(Status::out_of_resources);
        return std::make_unique<FakeQueue>(world_, *this);
    }
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode&) override {
        return fail(Status::invalid_operation);
    }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> create_sub_device(std::span<const uint32_t>) override {
        return fail(Status::device_partition_failed);
    }
    [[nodiscard]] uint64_t now_ns() const override { return 0; }
    [[nodiscard]] driver::PeerCopy* peer_copy() override { return options_.peers.empty() ? nullptr : this; }

    [[nodiscard]] driver::UnifiedMemory* unified_memory() override { return options_.is_unified ? this : nullptr; }

    [[nodiscard]] bool has_bytes() const { return options_.has_bytes; }
    // Where the device sees `size` bytes at `address`.
    [[nodiscard]] std::byte* bytes(DeviceAddress address, uint64_t size) {
        if (options_.space.is_host())
            return host_bytes(address, size);
        if (options_.is_unified && (address.value < base() || address.value >= base() + arena_.size())) {
            EXPECT_EQ(world_.device_owned(address, size), size) << "the device uses what belongs to the host";
            return address.host();
        }
        EXPECT_GE(address.value, base());
        EXPECT_LE(address.value + size, base() + arena_.size());
        return arena_.data() + (address.value - base());
    }

    [[nodiscard]] std::byte* host_bytes(DeviceAddress address, uint64_t size) const {
        EXPECT_EQ(world_.device_owned(address, size), 0u) << "the host uses what belongs to a device";
        return address.host();
    }

private:
    [[nodiscard]] driver::Timepoint map(driver::Queue& queue, driver::Memory range,
                                        const driver::Submission& submission) override {
        return change_owner(queue, submission, [=, this] {
            EXPECT_EQ(world_.device_owned(range.address, range.size), range.size);
            world_.take_from_device(range.address, range.size);
        });
    }
    [[nodiscard]] driver::Timepoint unmap(driver::Queue& queue, driver::Memory range,
                                          const driver::Submission& submission) override {
        return change_owner(queue, submission, [=, this] {
            EXPECT_EQ(world_.device_owned(range.address, range.size), 0u);
            world_.give_to_device(range.address, range.size);
        });
    }
    [[nodiscard]] driver::Timepoint change_owner(driver::Queue& on, const driver::Submission& submission,
                                                 std::function<void()> change) {
        auto& queue = static_cast<FakeQueue&>(on);
        if (world_.on_owner_change)
            world_.on_owner_change(queue);
        return queue.submit(submission, std::move(change));
    }
    [[nodiscard]] uint64_t base() const { return (uint64_t{0xD0} + options_.space.value) << 40; }
    [[nodiscard]] std::optional<driver::PeerLink> link(SpaceId space) const override {
        if (!options_.peers.contains(space))
            return std::nullopt;
        const auto known = options_.links.find(space.value);
        return known == options_.links.end() ? driver::PeerLink{} : known->second;
    }
    [[nodiscard]] driver::Timepoint copy(driver::Queue& queue, SpaceId from_space,
                                         const driver::CopyOperation& operation,
                                         const driver::Submission& submission) override {
        return copy_all(queue, from_space, {&operation, 1}, submission);
    }
    // One operation for the whole list.
    [[nodiscard]] driver::Timepoint copy_all(driver::Queue& queue, SpaceId from_space,
                                             std::span<const driver::CopyOperation> operations,
                                             const driver::Submission& submission) override {
        FakeDevice& other = *(*all_)[from_space.value];
        const std::vector<driver::CopyOperation> list(operations.begin(), operations.end());
        return static_cast<FakeQueue&>(queue).submit(submission, [=, this, &other] {
            for (const driver::CopyOperation& operation : list)
                for (uint64_t z = 0; z < operation.shape.slices; ++z)
                    for (uint64_t y = 0; y < operation.shape.rows; ++y)
                        std::memcpy(bytes(row_of(operation.to, y, z), operation.shape.row_bytes),
                                    other.bytes(row_of(operation.from, y, z), operation.shape.row_bytes),
                                    operation.shape.row_bytes);
        });
    }

    FakeWorld& world_;
    Options options_;
    std::vector<FakeDevice*>* all_;
    driver::DeviceInfo info_;
    std::vector<std::byte> arena_;
    uint64_t reserved_ = 0;
    bool refuses_queues_ = false;
};

inline FakeQueue::FakeQueue(FakeWorld& world, FakeDevice& device) : world_(world), device_(device) {
    world_.queues_.push_back(this);
}
inline FakeQueue::~FakeQueue() { std::erase(world_.queues_, this); }

inline driver::Timepoint FakeQueue::submit(const driver::Submission& submission, std::function<void()> action) {
    for (const driver::Timepoint& wait : submission.waits)
        EXPECT_TRUE(!wait.queue || wait.value <= static_cast<FakeQueue*>(wait.queue)->submitted_)
            << "waits for something that was not submitted";
    operations_.push_back({{submission.waits.begin(), submission.waits.end()}, std::move(action)});
    return {this, ++submitted_};
}

inline driver::Timepoint FakeQueue::copy(const driver::CopyOperation& operation, const driver::Submission& submission) {
    if (world_.on_copy)
        world_.on_copy(*this);
    if (!device_.has_bytes())
        return submit(submission, [] {});
    const driver::Timepoint done = submit(submission, [this, operation] {
        const auto at = [this, &operation](const driver::CopyOperation::End& end, uint64_t y, uint64_t z) {
            const DeviceAddress address = row_of(end, y, z);
            return end.place == driver::CopyOperation::Place::host
                       ? device_.host_bytes(address, operation.shape.row_bytes)
                       : device_.bytes(address, operation.shape.row_bytes);
        };
        for (uint64_t z = 0; z < operation.shape.slices; ++z)
            for (uint64_t y = 0; y < operation.shape.rows; ++y)
                std::memcpy(at(operation.to, y, z), at(operation.from, y, z), operation.shape.row_bytes);
    });
    if (world_.copies_at_once)
        wait(done.value);
    return done;
}

inline driver::Timepoint FakeQueue::fill(const driver::FillOperation& operation, const driver::Submission& submission) {
    const std::vector<std::byte> pattern(operation.pattern.begin(), operation.pattern.end());
    return submit(submission, [this, operation, pattern] {
        std::byte* const target = device_.bytes(operation.address, operation.size);
        for (uint64_t i = 0; i < operation.size; ++i)
            target[i] = pattern[i % pattern.size()];
    });
}

inline bool FakeQueue::is_ready() const {
    if (operations_.empty() || held_back_)
        return false;
    for (const driver::Timepoint& wait : operations_.front().waits)
        if (!wait.is_complete())
            return false;
    return true;
}

inline void FakeQueue::step() {
    const Operation operation = std::move(operations_.front());
    operations_.pop_front();
    const uint64_t value = completed() + 1;
    const bool waited_for_failure = std::ranges::any_of(operation.waits, [](driver::Timepoint wait) {
        return wait.queue && wait.queue->status(wait.value) != Status::success;
    });
    if (value == failing_)
        failed_[value] = Status::out_of_resources;
    else if (waited_for_failure)
        failed_[value] = Status::exec_status_error_for_events_in_wait_list;
    else
        operation.action();
    started_.fetch_add(1);
    completed_.fetch_add(1, std::memory_order_release);
    ++world_.executed_;
}

inline void FakeQueue::wait(uint64_t value) {
    while (completed() < value && world_.step()) {
    }
    ASSERT_GE(completed(), value) << "deadlock";
}

}  // namespace polder::test
