// Sparse memory: stretches of host addresses of which only the pages in use count against the limit of host memory.
//
// A large storage of which the host uses parts (maps, sub-buffers) gets one stretch of addresses for all of its bytes, so that no part ever
// moves. The system gives a page memory when it is first written; the pool counts the page against its limit, like a block, as soon
// as a command needs it. A buffer of 16 GiB of which one page is used costs one page.
//
// `drain` frees the stretches whose commands are complete, in any order. Up to 16 stretches with at most 64 KiB in use are kept for storages of
// the same size, so that a program that creates, partly uses and releases large buffers makes no system calls. The pages of kept stretches do
// not count; together they have at most 1 MiB. When a new storage gets a kept stretch, the pages that it uses count again; the others are spare
// until it uses them too (touched_pages.h). All spare pages together have at most 256 KiB; further ones go back to the system. So at most 1.25 MiB
// of the process do not count. Any thread. Sizes are bytes. Freeing needs no memory. With `pinned:True` (host_pins.h) the parts in use are
// pinned; where memory is pinned by use (adaptive_pins.h), each stretch is a region of AdaptivePins.
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

// A range of reserved addresses. The destructor unmaps it.
class Stretch {
public:
    // out_of_host_memory when the process has no free range of addresses of this size.
    [[nodiscard]] static Result<std::unique_ptr<Stretch>> reserve(ByteCount size);
    ~Stretch();
    Stretch(const Stretch&) = delete;
    Stretch& operator=(const Stretch&) = delete;

    [[nodiscard]] DeviceAddress address() const { return address_; }
    // Called before `part` is used for the first time. When the system counts promises, makes the part accessible, so that it counts. False:
    // the system promises no more memory.
    [[nodiscard]] bool back(ByteRange part) const;
    // Chooses large pages for a large part that is about to be used whole.
    void prepare(ByteRange part) const;
    // Registers a part that is in use from now on with the devices until the stretch is unmapped. Parts begin and end at pages, or at the
    // end of the stretch, and do not overlap. One thread at a time. Without memory for its notes, the part is not pinned.
    void pin(HostPins& pins, ByteRange part) noexcept;
    // Called before the first use: from now on `pins` may register the stretch with devices, until it is unmapped.
    void pin_by_use(AdaptivePins& pins) noexcept;

private:
    friend class SparseMemory;
    // Gives pages back to the system; they are zero afterwards.
    void discard(TouchedPages::Range pages) const noexcept;
    Stretch(DeviceAddress address, uint64_t size) : address_(address), size_(size) {}

    const DeviceAddress address_;
    const uint64_t size_;
    uint64_t charged_ = 0;  // the bytes of its pages that count against the limit
    TouchedPages touched_;
    uint64_t spare_bytes_ = 0;  // the bytes of its spare pages, while a storage uses it
    HostPins* pins_ = nullptr;  // outlives the stretch
    std::vector<driver::Memory> pinned_;
    AdaptivePins* adaptive_pins_ = nullptr;  // likewise
    Timepoints after_;
    std::unique_ptr<Stretch> next_;
};

class SparseMemory {
public:
    // The size of the pages in which stretches are counted.
    [[nodiscard]] static Alignment page();

    // `pins`, which may be null, outlives the object.
    explicit SparseMemory(Allocator& pool, AdaptivePins* pins = nullptr) : pool_(pool), pins_(pins) {}
    // Precondition: no storage and no command in flight uses a stretch.
    ~SparseMemory();
    SparseMemory(const SparseMemory&) = delete;
    SparseMemory& operator=(const SparseMemory&) = delete;

    // A stretch for a storage of `size` bytes. out_of_host_memory when the process has no free range of addresses of this size.
    [[nodiscard]] Result<std::unique_ptr<Stretch>> reserve(ByteCount size);
    // Unmaps the stretches that are kept.
    void trim() noexcept;
    // The bytes of pages that the system backs and that do not count: those of kept stretches, and spare pages.
    [[nodiscard]] ByteCount uncounted_bytes() const noexcept;

    // Counts the pages of `part`, none of which was charged before. False, and counts nothing, when the pool's limit does not allow them.
    [[nodiscard]] bool charge(Stretch& stretch, ByteRange part);
    // Undoes `charge` of a part that was not used. Pages that an earlier storage left there are given back to the system.
    void discharge(Stretch& stretch, ByteRange part) noexcept;
    // Frees the stretch when all of `after` is complete.
    void free(std::unique_ptr<Stretch> stretch, Timepoints&& after) noexcept;

    // Frees the stretches whose timepoints are complete.
    void drain() noexcept;
    // One of the timepoints that a freed stretch waits for.
    [[nodiscard]] std::optional<driver::Timepoint> oldest() const;

private:
    static constexpr size_t kept_max = 16;

    void give_back(std::unique_ptr<Stretch> stretch) noexcept;
    // A kept stretch of `bytes`; null when there is none.
    [[nodiscard]] std::unique_ptr<Stretch> take_kept(uint64_t bytes) noexcept;
    // Keeps the stretch and returns the one that it displaces, if any; returns `stretch` itself when it has too many pages in use.
    [[nodiscard]] std::unique_ptr<Stretch> keep(std::unique_ptr<Stretch> stretch) noexcept;

    [[nodiscard]] Result<std::unique_ptr<Stretch>> map(ByteCount size);
    void count_spare(Stretch& stretch) noexcept;

    Allocator& pool_;
    AdaptivePins* const pins_;
    mutable WordMutex mutex_;
    // A place for one kept stretch. The thread that exchanges the pointer for another one or for null owns the stretch. `bytes` is the
    // size of the stretch, but may be out of date while several threads use the place.
    struct KeptStretch {
        std::atomic<uint64_t> bytes{0};
        std::atomic<Stretch*> stretch{nullptr};
    };
    mutable std::array<KeptStretch, kept_max> kept_;  // uncounted_bytes() takes each one out shortly
    std::atomic<uint64_t> spare_bytes_{0};  // the spare bytes of all stretches that storages use
    std::atomic<size_t> next_kept_{0};  // the place that is used next when none is free
    std::unique_ptr<Stretch> freed_ POLDER_GUARDED_BY(mutex_);  // freed stretches that are still in use; newest first
    std::atomic<bool> has_freed_{false};  // whether freed_ has any; written under the mutex
};

}  // namespace polder::memory
