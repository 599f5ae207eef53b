// CheckedQueue, and the record of its device's memory regions. See checking_driver.h.
#pragma once

#include <base/mutex.h>
#include <base/scope_exit.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <polder/driver.h>
#include <span>

namespace polder::devices {

[[noreturn]] void report_violation(const char* what);
inline void must(bool holds, const char* what) {
    if (!holds) [[unlikely]]
        report_violation(what);
}

[[nodiscard]] inline uint64_t bytes_of(const driver::RectShape& shape, const driver::RectLayout& layout) {
    return (shape.slices - 1) * layout.slice_pitch + (shape.rows - 1) * layout.row_pitch + shape.row_bytes;
}

inline void check_rows(const driver::CopyOperation& copy) {
    const driver::RectShape& shape = copy.shape;
    must(shape.row_bytes != 0 && shape.rows != 0 && shape.slices != 0, "a copy of nothing");
    for (const driver::CopyOperation::End* const end : {&copy.from, &copy.to})
        must(shape.rows == 1 || end->layout.row_pitch >= shape.row_bytes, "a copy's rows overlap");
}

// The regions that a device has reserved, and those of host memory that its kernels use in place. Shared with its sub-devices.
class CheckedMemory final : private driver::HostRegions {
public:
    enum class Unified : uint8_t { no, yes };  // whether the device also uses host memory (driver::UnifiedMemory)
    CheckedMemory(const driver::DeviceInfo& info, Unified unified)
        : is_host_(info.space.is_host()), is_unified_(unified == Unified::yes),
          alignment_(info.base_address_alignment) {}

    void reserved(const driver::Memory& memory, ByteCount asked);
    void released(const driver::Memory& memory);
    // Virtual memory.
    void reserved_addresses(DeviceAddress address, uint64_t size, Alignment page);
    void released_addresses(const driver::Memory& range);
    void committing(const driver::Memory& range, Alignment page) const;
    void committed(const driver::Memory& range);
    void decommitting(const driver::Memory& range, Alignment page);

    // Wraps the device's HostRegions, so that its regions are known. Null for a device without HostRegions.
    [[nodiscard]] driver::HostRegions* host_regions(driver::HostRegions* of_device);

    // True when the bytes lie within one region, or in committed addresses. Other host memory is not known.
    [[nodiscard]] bool contains(DeviceAddress address, uint64_t size) const;

private:
    [[nodiscard]] Result<void> add(std::span<std::byte> region) override;
    void remove(std::span<std::byte> region) override;
    [[nodiscard]] bool are_for_kernels() const override { return host_regions_.load()->are_for_kernels(); }
    [[nodiscard]] static bool is_in(const std::map<uint64_t, uint64_t>& ranges, uint64_t address, uint64_t size);

    const bool is_host_;
    const bool is_unified_;
    const uint64_t alignment_;
    mutable Mutex mutex_;
    std::map<uint64_t, uint64_t> regions_ POLDER_GUARDED_BY(mutex_);  // sizes by address
    std::map<uint64_t, uint64_t> addresses_ POLDER_GUARDED_BY(mutex_);  // likewise; for virtual memory
    std::map<uint64_t, uint64_t> committed_ POLDER_GUARDED_BY(mutex_);  // likewise; neighbours are one
    std::atomic<driver::HostRegions*> host_regions_{nullptr};
    std::map<uint64_t, uint64_t> pinned_ POLDER_GUARDED_BY(mutex_);  // likewise; regions of host memory
};

class CheckedQueue final : public driver::Queue, private driver::Fence {
public:
    CheckedQueue(std::unique_ptr<driver::Queue> queue, const driver::DeviceInfo& info,
                 std::shared_ptr<const CheckedMemory> memory);
    ~CheckedQueue() override;

    driver::Timepoint copy(const driver::CopyOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint fill(const driver::FillOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint call(const driver::HostOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint marker(const driver::Submission& submission) override;
    void flush() override {
        follow();
        queue_->flush();
    }
    void wait(uint64_t value) override;
    [[nodiscard]] Status status(uint64_t value) const override { return queue_->status(value); }
    [[nodiscard]] driver::Fence* fence() override { return queue_->fence() ? this : nullptr; }

    [[nodiscard]] uint64_t submitted() const { return submitted_.load(); }
    // Checks the submission, calls `submit(queue, submission)` with the wrapped queue, and checks the timepoint that it returns.
    template <class Submit>
    driver::Timepoint pass_on(const driver::Submission& submission, Submit&& submit, uint64_t operations_max = 1);

private:
    [[nodiscard]] bool notify(driver::FenceWaiter& waiter) override;
    struct WatchedCall;
    // In the child of a fork, the wrapped queue may have another counter than before, which is published from then on.
    void follow() {
        if (&queue_->counter() != &counter()) [[unlikely]]
            publish_at(queue_->counter());
    }
    [[nodiscard]] std::vector<driver::Timepoint> unwrapped(driver::Waits waits) const;

    const std::unique_ptr<driver::Queue> queue_;
    const driver::DeviceInfo& info_;
    const std::shared_ptr<const CheckedMemory> memory_;
    std::atomic<uint64_t> submitted_{0};
    std::atomic<bool> is_submitting_{false};
    std::deque<std::unique_ptr<WatchedCall>> calls_;  // used by the submitting thread only
};

template <class Submit>
driver::Timepoint CheckedQueue::pass_on(const driver::Submission& submission, Submit&& submit,
                                        uint64_t operations_max) {
    must(!is_submitting_.exchange(true), "two threads submit to one queue at once");
    const ScopeExit no_longer{[&]() noexcept { is_submitting_.store(false); }};  // also when the driver throws
    follow();
    const std::vector<driver::Timepoint> waits = unwrapped(submission.waits);
    const uint64_t before = submitted_.load();
    const driver::Timepoint point = submit(*queue_, driver::Submission{waits, submission.times});
    must(point.queue == queue_.get() && point.value > before && point.value - before <= operations_max,
         "a driver's timepoints do not count up by one");
    submitted_.store(point.value);
    return {this, point.value};
}

}  // namespace polder::devices
