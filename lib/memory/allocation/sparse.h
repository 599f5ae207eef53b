// Sparse memory: stretches of host addresses of which only the pages in use count.
//
// A storage of which the host sees parts (maps, sub-buffers) gets one stretch for all of its bytes, so that no part ever
// moves. The system backs a page when it is first written; the pool counts the pages as soon as they are asked for, against
// its limit, like blocks. One page of a buffer of 16 GiB costs one page.
//
// A stretch that commands in flight still use goes back when they are complete, in any order: `drain` looks. Up to 16 stretches with at
// most 64 KiB in use are kept for storages of the same size, so that a program that creates, uses a part of and releases large
// buffers makes no system calls. The pages of a kept stretch do not count against the limit: the 16 have at most 1 MiB together. When the next storage
// has the stretch, the pages that it uses count again, and the others are spare until it uses them too (touched_pages.h). All spare pages of a memory together
// are 256 KiB at most; more go back to the system. So the process never has more than 1.25 MiB that do not count. Any thread.
// Sizes are bytes. Freeing needs no memory. Where host memory is pinned (host_pins.h), the parts in use are; where it is pinned by its use
// (adaptive_pins.h), a stretch is a region that may be.
#pragma once

#include "adaptive_pins.h"
#include "host_pins.h"
#include "touched_pages.h"

#include <base/word_mutex.h>
#include <memory/allocator.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <polder/driver.h>
#include <polder/result.h>
#include <vector>

namespace polder::memory {

// Unmapped when destroyed.
class Stretch {
public:
    // out_of_host_memory when there are no such addresses.
    [[nodiscard]] static Result<std::unique_ptr<Stretch>> reserve(ByteCount size);
    ~Stretch();
    Stretch(const Stretch&) = delete;
    Stretch& operator=(const Stretch&) = delete;

    [[nodiscard]] DeviceAddress address() const { return address_; }
    // Before `part` is used for the first time: memory that the system counts, where it counts promises. False: there is none.
    [[nodiscard]] bool back(ByteRange part) const;
    // Chooses large pages for a large part that is about to be used whole.
    void prepare(ByteRange part) const;
    // Registers a part that is in use from now on with the devices until the stretch is unmapped. Parts begin and end at pages, or at the
    // end of the stretch, and do not overlap. One thread at a time. Without memory for its notes, the part is not pinned.
    void pin(HostPins& pins, ByteRange part) noexcept;
    // Before the first use: may be registered with devices until it is unmapped.
    void pin_by_use(AdaptivePins& pins) noexcept;

private:
    friend class SparseMemory;
    // Gives pages back to the system; they are zero afterwards.
    void discard(TouchedPages::Range pages) const noexcept;
    Stretch(DeviceAddress address, uint64_t size) : address_(address), size_(size) {}

    const DeviceAddress address_;
    const uint64_t size_;
    uint64_t charged_ = 0;  // bytes of its pages that count
    TouchedPages touched_;
    uint64_t spare_bytes_ = 0;  // of its spare pages, while a storage has it
    HostPins* pins_ = nullptr;  // outlives the stretch
    std::vector<driver::Memory> pinned_;
    AdaptivePins* adaptive_pins_ = nullptr;  // likewise
    Timepoints after_;
    std::unique_ptr<Stretch> next_;
};

class SparseMemory {
public:
    // What stretches are counted in multiples of.
    [[nodiscard]] static Alignment page();

    // `pins`, which may be null, outlives the object.
    explicit SparseMemory(Allocator& pool, AdaptivePins* pins = nullptr) : pool_(pool), pins_(pins) {}
    // No stretch is in use, by a program or a device.
    ~SparseMemory();
    SparseMemory(const SparseMemory&) = delete;
    SparseMemory& operator=(const SparseMemory&) = delete;

    // A stretch for a storage of `size` bytes; out_of_host_memory when there are no such addresses.
    [[nodiscard]] Result<std::unique_ptr<Stretch>> reserve(ByteCount size);
    // Unmaps the stretches that are kept.
    void trim() noexcept;
    // What the system backs and no storage uses: stretches that are kept, and spare pages.
    [[nodiscard]] ByteCount uncounted_bytes() const noexcept;

    // Counts the pages of `part`, none of which was charged before; false, and nothing, when the pool's limit does not allow them.
    [[nodiscard]] bool charge(Stretch& stretch, ByteRange part);
    // Takes back what was charged and not used; pages that an earlier storage left there go back to the system.
    void discharge(Stretch& stretch, ByteRange part) noexcept;
    // The stretch goes back when all of `after` is complete.
    void free(std::unique_ptr<Stretch> stretch, Timepoints&& after) noexcept;

    // Gives back the stretches whose timepoints are complete.
    void drain() noexcept;
    // One of the timepoints that a freed stretch waits for.
    [[nodiscard]] std::optional<driver::Timepoint> oldest() const;

private:
    static constexpr size_t kept_max = 16;

    void give_back(std::unique_ptr<Stretch> stretch) noexcept;
    // A kept stretch of `bytes`; null when there is none.
    [[nodiscard]] std::unique_ptr<Stretch> take_kept(uint64_t bytes) noexcept;
    // The stretch, when it is not worth keeping, else the one that it displaces.
    [[nodiscard]] std::unique_ptr<Stretch> keep(std::unique_ptr<Stretch> stretch) noexcept;

    [[nodiscard]] Result<std::unique_ptr<Stretch>> map(ByteCount size);
    void count_spare(Stretch& stretch) noexcept;

    Allocator& pool_;
    AdaptivePins* const pins_;
    mutable WordMutex mutex_;
    // A kept stretch belongs to the thread that exchanges it for another one or for null. `bytes` is its size, but for moments in
    // which several threads use the place.
    struct KeptStretch {
        std::atomic<uint64_t> bytes{0};
        std::atomic<Stretch*> stretch{nullptr};
    };
    mutable std::array<KeptStretch, kept_max> kept_;  // uncounted_bytes() takes one for a moment
    std::atomic<uint64_t> spare_bytes_{0};  // of all stretches that storages have
    std::atomic<size_t> next_kept_{0};  // where the next one goes if no place is free
    std::unique_ptr<Stretch> freed_ POLDER_GUARDED_BY(mutex_);  // newest first
    std::atomic<bool> has_freed_{false};  // whether there are any. Written under the mutex.
};

}  // namespace polder::memory
