// Touches: which commands in flight read or write a byte range, and in which memory.
// Values without locks; the owner of the storage's lock uses them.
#pragma once

#include <base/small_vector.h>
#include <base/wait_list.h>

#include <polder/driver.h>
#include <polder/types.h>

namespace polder::memory {

// How an operation in flight uses bytes in one space. `user`: an operation of the application, which orders such operations by
// events. `hidden`: an operation that only this layer knows. `earlier`: an operation of the earlier owner of the memory; it may write,
// and whether it fails does not matter here. `owner_change`: makes the touch's space the owner of memory that the host shares
// (storage_link.cpp); when it has failed, every command in that space fails, also one that overwrites.
enum class TouchKind : uint8_t {
    user_read = 1,
    user_write = 2,
    hidden_read = 4,
    hidden_write = 8,
    earlier = 16,
    owner_change = 32,
};
inline constexpr uint8_t any_write = 2 | 8 | 16 | 32;
inline constexpr uint8_t any_hidden = 4 | 8 | 16 | 32;
inline constexpr uint8_t any_hidden_write = 8 | 16 | 32;
inline constexpr uint8_t any_touch = 63;

struct Touch {
    driver::Queue* queue = nullptr;
    uint64_t value = 0;
    SpaceId space;
    TouchKind kind = TouchKind::user_read;

    [[nodiscard]] driver::Timepoint when() const { return {queue, value}; }
    friend bool operator==(const Touch&, const Touch&) = default;
};

// The touches of one byte range that may still be in flight: at most one for each combination of space, kind and queue.
class Touches {
public:
    Touches() = default;
    // A copy has the same capacity as the original, so that splitting a prepared piece makes two prepared pieces.
    Touches(const Touches& other) {
        list_.reserve(other.list_.capacity());
        list_.append(other.list_.view());
    }
    Touches& operator=(const Touches& other) = delete;
    Touches(Touches&&) noexcept = default;
    Touches& operator=(Touches&&) noexcept = default;
    ~Touches() = default;

    [[nodiscard]] bool has_room(uint32_t count) const { return list_.size() + count <= list_.capacity(); }
    // Afterwards, `count` calls of add allocate no memory.
    void make_room(uint32_t count) { list_.reserve(list_.size() + count); }
    // Adds a touch. The caller has called make_room. Inlined always: a call takes as long as the rest of it.
    [[gnu::always_inline]] void add(SpaceId space, TouchKind kind, driver::Timepoint when) noexcept {
        for (Touch& touch : list_) {
            if (touch.queue == when.queue && touch.space == space && touch.kind == kind) {
                touch.value = std::max(touch.value, when.value);
                return;
            }
        }
        // Transfers and changes of the owner are added even if they are complete, because later commands check whether they succeeded.
        if (when.queue && (kind == TouchKind::hidden_write || kind == TouchKind::owner_change || !when.is_complete()))
            list_.push_back({when.queue, when.value, space, kind});
    }
    // Removes the touches that are complete, except for failed transfers for which is_needed(space) is true, and for failed
    // changes of the owner.
    template <class F>
    void prune(F&& is_needed) noexcept {
        for (uint32_t i = list_.size(); i-- > 0;) {
            const Touch& touch = list_[i];
            if (!touch.when().is_complete())
                continue;
            if (touch.kind == TouchKind::owner_change && has_failed(touch.when()))
                continue;
            if (touch.kind == TouchKind::hidden_write && has_failed(touch.when()) && is_needed(touch.space))
                continue;
            list_.erase_unordered(i);
        }
    }
    // Removes failed changes of the owner, because the change is made again.
    void forget_failed_changes() noexcept {
        for (uint32_t i = list_.size(); i-- > 0;)
            if (list_[i].kind == TouchKind::owner_change && has_failed(list_[i].when()))
                list_.erase_unordered(i);
    }
    // A command overwrites the bytes: from now on it does not matter whether earlier transfers fail.
    void supersede_transfers() noexcept {
        for (uint32_t i = list_.size(); i-- > 0;) {
            if (list_[i].kind != TouchKind::hidden_write)
                continue;
            if (list_[i].when().is_complete())
                list_.erase_unordered(i);
            else
                list_[i].kind = TouchKind::earlier;
        }
    }
    // Removes the touches in `space`, because an operation that waits for all of them is added next. Changes of the owner stay, because
    // later commands check whether they succeeded.
    void clear(SpaceId space) noexcept {
        for (uint32_t i = list_.size(); i-- > 0;)
            if (list_[i].space == space && list_[i].kind != TouchKind::owner_change)
                list_.erase_unordered(i);
    }
    // Adds the touches in `space` of the kinds in `mask` to `waits`.
    void collect(SpaceId space, uint8_t mask, WaitList& waits) const {
        for (const Touch& touch : view()) {
            if (touch.space != space || (static_cast<uint8_t>(touch.kind) & mask) == 0)
                continue;
            if (touch.kind == TouchKind::owner_change) [[unlikely]]
                waits.need(touch.when());
            else
                waits.add(touch.when());
        }
    }
    // Appends the timepoints of the touches in `space` that are not complete, the latest of each queue.
    void append_in_flight(SpaceId space, SmallVector<driver::Timepoint, 3>& points) const {
        for (const Touch& touch : view()) {
            if (touch.space != space || touch.when().is_complete())
                continue;
            const auto known =
                std::ranges::find(points, touch.queue, [](const driver::Timepoint& point) { return point.queue; });
            if (known == points.end())
                points.push_back(touch.when());
            else
                known->value = std::max(known->value, touch.value);
        }
    }
    // For a command that reads the bytes: it must fail when a transfer to `space` fails, also when the transfer is complete or is
    // not the last operation on its queue.
    void collect_needed(SpaceId space, WaitList& waits) const {
        for (const Touch& touch : view())
            if (touch.kind == TouchKind::hidden_write && touch.space == space)
                waits.need(touch.when());
    }
    // The kinds of all touches together.
    [[nodiscard]] uint8_t kinds() const {
        uint8_t together = 0;
        for (const Touch& touch : view())
            together |= static_cast<uint8_t>(touch.kind);
        return together;
    }
    // True when a transfer is among the touches.
    [[nodiscard]] bool has_transfers() const {
        return std::ranges::any_of(view(), [](const Touch& touch) { return touch.kind == TouchKind::hidden_write; });
    }
    [[nodiscard]] bool empty() const { return list_.empty(); }
    [[nodiscard]] std::span<const Touch> view() const { return list_.view(); }
    friend bool operator==(const Touches& a, const Touches& b) {
        return std::equal(a.list_.begin(), a.list_.end(), b.list_.begin(), b.list_.end());
    }

private:
    SmallVector<Touch, 3> list_;
};

}  // namespace polder::memory
