// AdaptivePins: registers host memory with devices (driver::HostRegions) when it is copied to and from them repeatedly, so that its
// copies need no staging.
//
// The rule is that of ski rental (Karlin, Manasse, Rudolph, Sleator: Competitive snoopy caching, 1988): registering takes time once,
// staging takes time for each copy. If memory is registered when staging has taken as long as registering would, the total is at most
// twice the possible minimum. Memory is counted and registered in granules of 2 MiB of addresses, so that two granules never share a page.
// When the granules of a copy have been copied `copies_max` times on average, those that are not registered are registered by
// a thread of this object. Until then, their copies are staged. A copy that is due to a device's lack of room counts as several, because the
// bytes that are evicted are usually needed again.
//
// Registered pages must not be replaced, because devices would still use the old ones. So `discard` leaves them out, and they are released
// with their region. Their total size is bounded. Memory that a device refuses, or that cannot be noted, stays pageable.
//
// Owned by the space of host memory. Devices outlive this object's regions. Any thread may call any function. The driver is called
// without the lock. In the child of a fork, the devices are lost: nothing is registered or removed there any more.
#pragma once

#include <base/fork.h>
#include <base/mutex.h>
#include <base/service_thread.h>
#include <memory/region_source.h>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

namespace polder::memory {

class AdaptivePins final : private ForkParticipant {
public:
    static constexpr uint64_t granule_bytes = uint64_t{2} << 20;
    // Registering costs 0.085 ns a byte, and staging 0.009 ns a byte more than a direct copy (decision 131).
    static constexpr uint64_t copies_max = 8;
    // Smaller copies are not counted.
    static constexpr uint64_t copy_bytes_min = uint64_t{64} << 10;
    // How often a copy counts from or to a device whose memory had no room for what its commands use.
    static constexpr uint64_t times_when_short = 4;

    // At most `bytes_max` bytes are registered at a time.
    explicit AdaptivePins(ByteCount bytes_max);
    AdaptivePins(const AdaptivePins&) = delete;
    AdaptivePins& operator=(const AdaptivePins&) = delete;
    ~AdaptivePins();

    // Whether the system keeps the pages of a process in place when it forks: since Linux 5.10, the child gets copies of pinned pages.
    // Before, a parent that wrote to such a page got the copy, and devices kept the old page.
    [[nodiscard]] static bool are_forks_safe();
    // A quarter of the memory that the process may use.
    [[nodiscard]] static ByteCount share_of(ByteCount memory) { return ByteCount{memory.value / 4}; }

    // Once for each device; later calls do nothing.
    void add_device(driver::HostRegions& device);
    [[nodiscard]] bool has_devices() const { return has_devices_.load(std::memory_order_relaxed); }

    // Memory that may be registered from now on: whole pages, none of which another region has.
    void add_region(driver::Memory region) noexcept;
    // Called before the region is unmapped, when no operation uses it. Waits for a registration that has begun. An unknown region is
    // ignored.
    void remove_region(driver::Memory region) noexcept;
    // Calls f(driver::Memory) for the parts of `range` whose pages no device has or is about to get.
    template <class F>
    void for_each_pageable(driver::Memory range, F&& f) {
        const Lock lock(mutex_);
        visit_pageable(range, [](void* caller, driver::Memory part) { (*static_cast<F*>(caller))(part); }, &f);
    }
    // Whether some of the region's memory is registered or about to be.
    [[nodiscard]] bool has_registered(driver::Memory region);

    // Counts a copy of `bytes` bytes between parts of `range` and a device that has HostRegions, as `times` copies.
    void note_copy(driver::Memory range, uint64_t bytes, uint64_t times = 1) noexcept;
    // Returns when all requests are registered or refused; for tests.
    void wait_until_idle();

private:
    enum class State : uint8_t { pageable, registered /* or about to be */, refused };
    struct Granule {
        uint64_t copied_bytes = 0;
        State state = State::pageable;
    };
    struct Piece {
        driver::Memory memory;
        std::vector<driver::HostRegions*> devices;  // those with which the piece is registered
    };
    struct Region {
        driver::Memory memory;
        std::vector<Granule> granules;  // none before the first copy
        std::vector<Piece> pieces;
        bool is_changing = false;  // the thread registers a part of it
    };
    using RegionList = std::vector<std::unique_ptr<Region>>;

    [[nodiscard]] RegionList::iterator find(uint64_t address) POLDER_REQUIRES(mutex_);
    void visit_pageable(driver::Memory range, void (*f)(void*, driver::Memory), void* caller) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool count(Region& region, ByteRange range, uint64_t bytes) POLDER_REQUIRES(mutex_);
    void request(Region& region, ByteRange range) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool start_thread() POLDER_REQUIRES(mutex_);

    void work();
    // Registers a piece with every device with which it is not registered.
    void process(Region& region, size_t piece) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool add_to(driver::HostRegions& device, driver::Memory memory) POLDER_REQUIRES(mutex_);
    static void set_state(Region& region, driver::Memory piece, State state);

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    // The thread holds no lock while it calls the driver, and the child does not call the driver.
    [[nodiscard]] bool is_quiet() const override { return true; }
    void forget_threads() override;

    struct Request {
        Region* region;
        size_t piece;
    };

    Mutex mutex_;
    ConditionVariable changed_;
    std::atomic<bool> has_devices_{false};
    std::vector<driver::HostRegions*> devices_ POLDER_GUARDED_BY(mutex_);
    RegionList regions_ POLDER_GUARDED_BY(mutex_);  // by address
    std::deque<Request> requests_ POLDER_GUARDED_BY(mutex_);
    uint64_t bytes_max_ POLDER_GUARDED_BY(mutex_);
    uint64_t bytes_ POLDER_GUARDED_BY(mutex_) = 0;  // the sum of the sizes of all pieces
    uint32_t refusals_ POLDER_GUARDED_BY(mutex_) = 0;
    bool is_working_ POLDER_GUARDED_BY(mutex_) = false;
    bool is_stopping_ POLDER_GUARDED_BY(mutex_) = false;
    bool is_forked_ POLDER_GUARDED_BY(mutex_) = false;
    ServiceThread thread_;  // started under the mutex
    ForkMembership fork_membership_{*this};
};

// A HostRegionSource whose regions `pins` may register.
class AdaptiveRegionSource final : public RegionSource {
public:
    // `pins` outlives the source.
    explicit AdaptiveRegionSource(AdaptivePins& pins) : pins_(pins) {}

    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size) override;
    void release(driver::Memory memory) override;
    [[nodiscard]] ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override {
        return host_.preferred_size(needed, reserved);
    }
    [[nodiscard]] ByteCount available() const override { return host_.available(); }
    void discard(driver::Memory range) override;
    void prepare(driver::Memory range) override { host_.prepare(range); }
    [[nodiscard]] bool discards() const override { return host_.discards(); }
    [[nodiscard]] ByteCount resident(driver::Memory range) const override { return host_.resident(range); }

private:
    AdaptivePins& pins_;
    HostRegionSource host_;
};

}  // namespace polder::memory
