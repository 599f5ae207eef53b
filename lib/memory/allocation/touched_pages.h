// TouchedPages: lists the pages of a stretch of addresses (sparse.h) that have memory, while they are few.
//
// A stretch that is kept for the next storage still has the pages that earlier storages used. They are *spare* until the next storage uses
// them too or they are dropped. Up to `listed_max` pages are listed by their numbers. A stretch with more pages is not kept, so further pages
// are only counted. O(listed_max); uses no heap. Not thread-safe: guarded by what guards the stretch.
#pragma once

#include <array>
#include <cstdint>

namespace polder::memory {

class TouchedPages {
public:
    static constexpr uint32_t listed_max = 16;
    // The numbers of pages [begin, end).
    struct Range {
        uint64_t begin = 0;
        uint64_t end = 0;
        [[nodiscard]] bool contains(uint64_t page) const { return begin <= page && page < end; }
        [[nodiscard]] uint64_t size() const { return end - begin; }
    };

    // The storage uses these pages from now on; it used none of them before. When the list is full, spare pages are dropped.
    template <class F>
    void use(Range range, F&& drop) {
        uint64_t unknown = range.size() - set_used(range);
        if (unknown == 0)
            return;
        if (unknown > listed_max - count_)
            drop_spare(drop);
        if (unknown > listed_max - count_) {
            unlisted_ += unknown;
            return;
        }
        const uint32_t known = count_;
        for (uint64_t page = range.begin; page < range.end; ++page)
            if (!is_listed(page, known))
                pages_[count_++] = {page, true};
    }
    // Removes pages that the storage does not use any more and that have no memory.
    void remove(Range range) noexcept {
        const uint32_t before = count_;
        count_ = 0;
        for (uint32_t i = 0; i < before; ++i)
            if (!range.contains(pages_[i].number))
                pages_[count_++] = pages_[i];
        unlisted_ -= range.size() - (before - count_);
    }
    // Calls drop(Range) for the spare pages, neighbours together, and forgets them.
    template <class F>
    void drop_spare(F&& drop) {
        Range dropped;
        const uint32_t before = count_;
        count_ = 0;
        for (uint32_t i = 0; i < before; ++i) {
            if (pages_[i].is_used) {
                pages_[count_++] = pages_[i];
                continue;
            }
            if (dropped.size() != 0 && pages_[i].number != dropped.end) {
                drop(dropped);
                dropped = {};
            }
            if (dropped.size() == 0)
                dropped = {pages_[i].number, pages_[i].number};
            ++dropped.end;
        }
        if (dropped.size() != 0)
            drop(dropped);
    }
    // Makes all pages spare, because the next storage has not used any of them.
    void begin_next_storage() noexcept {
        for (uint32_t i = 0; i < count_; ++i)
            pages_[i].is_used = false;
    }

    // False when some pages are only counted.
    [[nodiscard]] bool are_listed() const { return unlisted_ == 0; }
    // How many pages are listed, and how many of them are spare.
    [[nodiscard]] uint32_t size() const { return count_; }
    [[nodiscard]] uint32_t spare() const {
        uint32_t spare = 0;
        for (uint32_t i = 0; i < count_; ++i)
            spare += pages_[i].is_used ? 0 : 1;
        return spare;
    }

private:
    struct Page {
        uint64_t number;
        bool is_used;
    };
    // Returns how many of the pages are listed.
    uint64_t set_used(Range range) {
        uint64_t listed = 0;
        for (uint32_t i = 0; i < count_; ++i)
            if (range.contains(pages_[i].number)) {
                pages_[i].is_used = true;
                ++listed;
            }
        return listed;
    }
    [[nodiscard]] bool is_listed(uint64_t number, uint32_t known) const {
        for (uint32_t i = 0; i < known; ++i)
            if (pages_[i].number == number)
                return true;
        return false;
    }

    std::array<Page, listed_max> pages_;
    uint32_t count_ = 0;
    uint64_t unlisted_ = 0;
};

}  // namespace polder::memory
