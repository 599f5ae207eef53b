// HostKernel: a loaded work-group function with its other forms, and the time per work-item that earlier launches took.
//
// Made by Device::load of host-executed devices. Any thread.
#pragma once

#include <atomic>
#include <host/code_contest.h>
#include <host/launch_width.h>
#include <polder/driver.h>

namespace polder::devices {

class HostKernel final : public driver::LoadedKernel {
public:
    explicit HostKernel(const driver::HostCode& loaded)
        : LoadedKernel({.local_bytes = loaded.local_bytes,
                        .private_bytes_per_work_item = loaded.private_bytes_per_work_item,
                        .preferred_multiple = loaded.preferred_multiple}),
          code(loaded), contest(code) {}

    // out_of_resources when the kernel needs more stack than workers have.
    [[nodiscard]] static Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::HostCode& code);

    void offer(std::unique_ptr<driver::OtherForms> forms) override { contest.offer(std::move(forms)); }

    const driver::HostCode code;  // as planned
    mutable CodeContest contest;

    // Moving average of nanoseconds for one work-item on one thread; 0 before the first launch.
    [[nodiscard]] float item_ns() const { return item_ns_.load(std::memory_order_relaxed); }
    void learn(float item_ns) const { add_to(item_ns_, item_ns); }
    // The same in pieces of two forms of the code, without the time that other programs took; before the first piece: item_ns.
    [[nodiscard]] float item_ns_in_pieces() const {
        const float measured = item_ns_in_pieces_.load(std::memory_order_relaxed);
        return measured == 0 ? item_ns() : measured;
    }
    void learn_in_pieces(float item_ns) const { add_to(item_ns_in_pieces_, item_ns); }

    // Whether the time of this launch is to be measured, of launches that are not measured otherwise: of short ones, one of several.
    [[nodiscard]] bool times_this() const {
        if (!contest.wants_times())
            return false;
        const uint32_t launches = launches_.load(std::memory_order_relaxed) + 1;
        launches_.store(launches, std::memory_order_relaxed);
        return launches % times_every_.load(std::memory_order_relaxed) == 0;
    }
    // Such a launch took so long.
    void took(uint64_t ns) const {
        constexpr uint64_t long_ns = 20'000;
        constexpr uint32_t every_of_short = 16;
        contest.worked(times_every_.load(std::memory_order_relaxed) * ns);
        times_every_.store(ns < long_ns ? every_of_short : 1, std::memory_order_relaxed);
    }

    mutable LaunchWidth width;

private:
    static void add_to(std::atomic<float>& average, float item_ns) {
        const float before = average.load(std::memory_order_relaxed);
        // Threads that launch the same kernel share this cache line, so the estimate is written only when it changes by 1/8 or more.
        if (before == 0 || item_ns < 0.875f * before || item_ns > 1.125f * before)
            average.store(before == 0 ? item_ns : 0.75f * before + 0.25f * item_ns, std::memory_order_relaxed);
    }

    mutable std::atomic<float> item_ns_{0}, item_ns_in_pieces_{0};
    mutable std::atomic<uint32_t> launches_{0}, times_every_{1};
};

}  // namespace polder::devices
