// Announced: the future uses of one storage by commands that wait for events, so that eviction knows which bytes are needed soon.
//
// A list in the order of the commands' numbers. Commands mostly run in that order, so the uses that are withdrawn are mostly the first.
// Others are found by binary search and marked; marked uses are removed when they are first, or when they are more than half. So
// withdrawing takes O(log n), and amortized O(1) moves. A search for the next use ends at the first match, and after `looked_at` uses:
// bytes that only later uses need count as not needed soon.
// Guarded by the storage's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <polder/types.h>
#include <vector>

namespace polder::memory {

class Announced {
public:
    struct Use {
        uint64_t number = 0;  // of the command
        SpaceId space;
        ByteRange range;
        bool is_withdrawn = false;
    };
    static constexpr size_t looked_at = 1024;

    // Numbers ascend within a thread, but those of several threads may arrive out of order. std::bad_alloc leaves everything as it was.
    void add(const Use& use) {
        uses_.push_back(use);
        for (size_t i = uses_.size() - 1; i > first_ && uses_[i - 1].number > use.number; --i, ++steps_)
            std::swap(uses_[i - 1], uses_[i]);
    }
    // Withdraws all uses of the command with this number.
    void withdraw(uint64_t number) noexcept {
        const auto begin = uses_.begin() + static_cast<ptrdiff_t>(first_);
        for (auto at = first_ < uses_.size() && begin->number == number
                           ? begin
                           : std::ranges::lower_bound(begin, uses_.end(), number, {}, &Use::number);
             at != uses_.end() && at->number == number; ++at, ++steps_) {
            withdrawn_ += at->is_withdrawn ? 0 : 1;
            at->is_withdrawn = true;
        }
        for (; first_ < uses_.size() && uses_[first_].is_withdrawn; ++first_, ++steps_) {
        }
        if (withdrawn_ >= few && 2 * withdrawn_ > uses_.size()) {
            steps_ += uses_.size() - first_;
            std::erase_if(uses_, [](const Use& use) { return use.is_withdrawn; });
            first_ = 0;
            withdrawn_ = 0;
        } else if (first_ == uses_.size()) {
            uses_.clear();
            first_ = 0;
            withdrawn_ = 0;
        }
    }
    // The number of the next command that will use bytes of `range` in `space`; the largest number when no such command is known.
    [[nodiscard]] uint64_t next_use(SpaceId space, ByteRange range) const {
        const size_t end = std::min(uses_.size(), first_ + looked_at);
        for (size_t i = first_; i < end; ++i, ++steps_)
            if (!uses_[i].is_withdrawn && uses_[i].space == space && uses_[i].range.overlaps(range))
                return uses_[i].number;
        return ~uint64_t{0};
    }

    [[nodiscard]] size_t size() const { return uses_.size() - withdrawn_; }
    // How many uses were examined or moved so far; for tests.
    [[nodiscard]] uint64_t steps() const { return steps_; }

private:
    static constexpr size_t few = 32;

    std::vector<Use> uses_;  // in ascending order of their numbers
    size_t first_ = 0;  // index in uses_; all uses before it were withdrawn
    size_t withdrawn_ = 0;  // how many of uses_ were withdrawn
    mutable uint64_t steps_ = 0;
};

}  // namespace polder::memory
