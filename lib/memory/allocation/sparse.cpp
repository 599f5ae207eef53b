// A stretch reserves addresses for a whole storage without memory. `charge` counts the pages of a part against the limit of host memory
// when it is first used. A released stretch waits until the commands that use it are complete, then its pages are unmapped.
#include "sparse.h"

#include "huge_page.h"
#include "system_memory.h"

#include <base/log.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace polder::memory {
namespace {

// Parts of this size or larger are assumed to be used in large pieces, so they get large pages.
constexpr uint64_t large_part_bytes = uint64_t{8} << 20;
// Stretches with more pages in use are not kept.
constexpr uint64_t kept_bytes_max = uint64_t{64} << 10;
// The most bytes of all spare pages of stretches in use.
constexpr uint64_t spare_bytes_max = uint64_t{256} << 10;

TouchedPages::Range pages_of(ByteRange part) {
    const uint64_t bytes = SparseMemory::page().value;
    return {part.begin / bytes, (part.end + bytes - 1) / bytes};
}

}  // namespace

Alignment SparseMemory::page() {
    static const Alignment alignment{static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
    return alignment;
}

Result<std::unique_ptr<Stretch>> Stretch::reserve(ByteCount size) {
    const uint64_t bytes = SparseMemory::page().round_up(size.value);
    void* const mapped = bytes < size.value
                             ? MAP_FAILED
                             : mmap(nullptr, bytes, SystemMemory::promises_count() ? PROT_NONE : PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return fail(Status::mem_object_allocation_failure, "no addresses for " + std::to_string(size.value) +
                                                               " bytes of host memory: " + std::strerror(errno));
    return std::unique_ptr<Stretch>(new Stretch(DeviceAddress::of(mapped), bytes));
}

bool Stretch::back(ByteRange part) const {
    if (!SystemMemory::promises_count())
        return true;
    const uint64_t begin = part.begin & ~(SparseMemory::page().value - 1);
    const uint64_t end = std::min(size_, SparseMemory::page().round_up(part.end));
    return mprotect(address_.plus(begin).host(), end - begin, PROT_READ | PROT_WRITE) == 0;
}

void Stretch::pin(HostPins& pins, ByteRange part) noexcept {
    const driver::Memory memory{address_.plus(part.begin), SparseMemory::page().round_up(part.size())};
    try {
        pinned_.reserve(pinned_.size() + 1);
        pins.add_region(memory);
        pins_ = &pins;
        pinned_.push_back(memory);
    } catch (const std::bad_alloc&) {
        pins.remove_region(memory);
        POLDER_LOG(memory, "%llu bytes of host memory are not pinned for lack of memory",
                   static_cast<unsigned long long>(part.size()));
    }
}

// When the system counts promises, parts that are not in use are inaccessible. The driver could not register the granules around a part.
void Stretch::pin_by_use(AdaptivePins& pins) noexcept {
    if (SystemMemory::promises_count())
        return;
    pins.add_region({address_, size_});
    adaptive_pins_ = &pins;
}

Stretch::~Stretch() {
    if (adaptive_pins_)
        adaptive_pins_->remove_region({address_, size_});
    for (const driver::Memory& part : pinned_)
        pins_->remove_region(part);
    munmap(address_.host(), size_);
}

void Stretch::discard(TouchedPages::Range pages) const noexcept {
    const uint64_t bytes = SparseMemory::page().value;
    madvise(address_.plus(pages.begin * bytes).host(), pages.size() * bytes, MADV_DONTNEED);
}

void Stretch::prepare(ByteRange part) const {
    if (part.size() < large_part_bytes)
        return;
    const uint64_t begin = huge_page.round_up(address_.value + part.begin);
    const uint64_t end = (address_.value + part.end) & ~(huge_page.value - 1);
    if (begin < end)
        madvise(DeviceAddress{begin}.host(), end - begin, MADV_HUGEPAGE);  // advice: may fail
}

SparseMemory::~SparseMemory() POLDER_NO_THREAD_SAFETY_ANALYSIS {
    while (freed_) {
        std::unique_ptr<Stretch> stretch = std::move(freed_);
        freed_ = std::move(stretch->next_);
        give_back(std::move(stretch));
    }
    trim();
}

// Another thread may put a stretch of another size into the place after its size was read; then that stretch is put back.
std::unique_ptr<Stretch> SparseMemory::take_kept(uint64_t bytes) noexcept {
    for (KeptStretch& kept : kept_) {
        if (kept.bytes.load(std::memory_order_relaxed) != bytes || !kept.stretch.load(std::memory_order_relaxed))
            continue;
        std::unique_ptr<Stretch> taken{kept.stretch.exchange(nullptr, std::memory_order_acq_rel)};
        if (!taken)
            continue;
        if (taken->size_ == bytes)
            return taken;
        taken = keep(std::move(taken));
    }
    return nullptr;
}

Result<std::unique_ptr<Stretch>> SparseMemory::reserve(ByteCount size) {
    if (auto kept = take_kept(page().round_up(size.value)))
        return kept;
    Result<std::unique_ptr<Stretch>> stretch = map(size);
    if (stretch)
        return stretch;
    trim();
    return map(size);
}

Result<std::unique_ptr<Stretch>> SparseMemory::map(ByteCount size) {
    Result<std::unique_ptr<Stretch>> stretch = Stretch::reserve(size);
    if (stretch && pins_)
        (*stretch)->pin_by_use(*pins_);
    return stretch;
}

void SparseMemory::trim() noexcept {
    for (KeptStretch& kept : kept_)
        delete kept.stretch.exchange(nullptr, std::memory_order_acq_rel);
}

// A thread may read a kept stretch only after it has taken it out of its place. Another thread may put another stretch there meanwhile.
ByteCount SparseMemory::uncounted_bytes() const noexcept {
    uint64_t bytes = spare_bytes_.load(std::memory_order_relaxed);
    for (KeptStretch& kept : kept_) {
        std::unique_ptr<Stretch> taken{kept.stretch.exchange(nullptr, std::memory_order_acq_rel)};
        if (!taken)
            continue;
        const uint64_t found = taken->touched_.size() * page().value;
        Stretch* expected = nullptr;
        if (kept.stretch.compare_exchange_strong(expected, taken.get(), std::memory_order_acq_rel)) {
            static_cast<void>(taken.release());
            bytes += found;
        }
    }
    return ByteCount{bytes};
}

bool SparseMemory::charge(Stretch& stretch, ByteRange part) {
    if (has_freed_.load(std::memory_order_relaxed))
        drain();
    const TouchedPages::Range pages = pages_of(part);
    const ByteCount bytes{pages.size() * page().value};
    if (!pool_.charge(bytes))
        return false;
    stretch.charged_ += bytes.value;
    stretch.touched_.use(pages, [&](TouchedPages::Range dropped) { stretch.discard(dropped); });
    count_spare(stretch);
    return true;
}

// Most storages use the same parts as the storages before them, so there is nothing to count.
void SparseMemory::count_spare(Stretch& stretch) noexcept {
    const uint64_t before = stretch.spare_bytes_;
    const uint64_t spare = stretch.touched_.spare() * page().value;
    if (spare == before) [[likely]]
        return;
    stretch.spare_bytes_ = spare;
    const uint64_t all = spare_bytes_.fetch_add(spare - before, std::memory_order_relaxed) + (spare - before);
    if (spare < before || all <= spare_bytes_max)
        return;
    stretch.touched_.drop_spare([&](TouchedPages::Range dropped) { stretch.discard(dropped); });
    spare_bytes_.fetch_sub(std::exchange(stretch.spare_bytes_, 0), std::memory_order_relaxed);
}

void SparseMemory::discharge(Stretch& stretch, ByteRange part) noexcept {
    const TouchedPages::Range pages = pages_of(part);
    const ByteCount bytes{pages.size() * page().value};
    stretch.discard(pages);
    stretch.touched_.remove(pages);
    stretch.charged_ -= bytes.value;
    pool_.discharge(bytes);
}

void SparseMemory::free(std::unique_ptr<Stretch> stretch, Timepoints&& after) noexcept {
    stretch->after_ = std::move(after);
    if (std::ranges::all_of(stretch->after_, [](const driver::Timepoint& point) { return point.is_complete(); })) {
        give_back(std::move(stretch));
        return;
    }
    const WordLock lock{mutex_};
    stretch->next_ = std::move(freed_);
    freed_ = std::move(stretch);
    has_freed_.store(true, std::memory_order_relaxed);
}

// Frees complete stretches. The system calls are made without the lock.
void SparseMemory::drain() noexcept {
    std::unique_ptr<Stretch> complete;
    {
        const WordLock lock{mutex_};
        for (std::unique_ptr<Stretch>* link = &freed_; *link;) {
            Stretch& stretch = **link;
            if (!std::ranges::all_of(stretch.after_,
                                     [](const driver::Timepoint& point) { return point.is_complete(); })) {
                link = &stretch.next_;
                continue;
            }
            std::unique_ptr<Stretch> taken = std::move(*link);
            *link = std::move(taken->next_);
            taken->next_ = std::move(complete);
            complete = std::move(taken);
        }
        has_freed_.store(freed_ != nullptr, std::memory_order_relaxed);
    }
    while (complete) {
        std::unique_ptr<Stretch> next = std::move(complete->next_);
        give_back(std::move(complete));
        complete = std::move(next);
    }
}

void SparseMemory::give_back(std::unique_ptr<Stretch> stretch) noexcept {
    const ByteCount charged{stretch->charged_};
    if (stretch->spare_bytes_ != 0)
        spare_bytes_.fetch_sub(std::exchange(stretch->spare_bytes_, 0), std::memory_order_relaxed);
    const std::unique_ptr<Stretch> surplus = keep(std::move(stretch));
    pool_.discharge(charged);
}

std::unique_ptr<Stretch> SparseMemory::keep(std::unique_ptr<Stretch> stretch) noexcept {
    const uint64_t touched = stretch->touched_.size() * page().value;
    if (!stretch->touched_.are_listed() || touched > kept_bytes_max || !stretch->pinned_.empty() ||
        (pins_ && pins_->has_registered({stretch->address_, stretch->size_})))
        return stretch;
    stretch->charged_ = 0;
    stretch->touched_.begin_next_storage();
    stretch->after_ = {};
    const auto is_free = [](const KeptStretch& kept) { return !kept.stretch.load(std::memory_order_relaxed); };
    auto place = std::ranges::find_if(kept_, is_free);
    if (place == kept_.end())
        place = kept_.begin() + next_kept_.fetch_add(1, std::memory_order_relaxed) % kept_max;
    place->bytes.store(stretch->size_, std::memory_order_relaxed);
    return std::unique_ptr<Stretch>{place->stretch.exchange(stretch.release(), std::memory_order_acq_rel)};
}

std::optional<driver::Timepoint> SparseMemory::oldest() const {
    const WordLock lock{mutex_};
    const Stretch* last = freed_.get();
    while (last && last->next_)
        last = last->next_.get();
    if (last)
        for (const driver::Timepoint& point : last->after_)
            if (!point.is_complete())
                return point;
    return std::nullopt;
}

}  // namespace polder::memory
