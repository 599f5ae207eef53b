// Touches: which commands in flight read or write a byte range, and in which memory.
// Values without locks; the owner of the storage's lock uses them.
#pragma once

#include <base/small_vector.h>
#include <base/wait_list.h>

#include <polder/driver.h>
#include <polder/types.h>

namespace polder::memory {

// How something in flight uses bytes in one space. `user` is an operation of the application, ordered against
// others of its kind by the application's events; `hidden` is an operation that only this layer knows; `earlier` is one of
// the earlier user of the memory: it may write, and whether it fails does not matter here. `owner_change` makes memory that the host
// shares the property of the touch's space (storage_link.cpp): every command there fails when it has failed, one that overwrites too.
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

// The touches of one byte range that may still be in flight; at most one per space, kind and queue.
class Touches {
public:
    Touches() = default;
    // A copy has as much room as the original: splitting a prepared piece leaves two prepared pieces.
    Touches(const Touches& other) {
        list_.reserve(other.list_.capacity());
        list_.append(other.list_.view());
    }
    Touches& operator=(const Touches& other) = delete;
    Touches(Touches&&) noexcept = default;
    Touches& operator=(Touches&&) noexcept = default;
    ~Touches() = default;

    [[nodiscard]] bool has_room(uint32_t count) const { return list_.size() + count <= list_.capacity(); }
    // Afterwards `count` calls of add allocate nothing.
    void make_room(uint32_t count) { list_.reserve(list_.size() + count); }
    // Remembers one more touch. The caller has made room.
    void add(SpaceId space, TouchKind kind, driver::Timepoint when) noexcept {
        for (Touch& touch : list_) {
            if (touch.queue == when.queue && touch.space == space && touch.kind == kind) {
                touch.value = std::max(touch.value, when.value);
                return;
            }
        }
        // Whether a transfer or a change of the owner has succeeded is asked later, so it is remembered even if it is complete.
        if (when.queue && (kind == TouchKind::hidden_write || kind == TouchKind::owner_change || !when.is_complete()))
            list_.push_back({when.queue, when.value, space, kind});
    }
    // Forgets the touches that are complete, but for transfers that have failed for which is_needed(space) is true, and for
    // changes of the owner that have failed.
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
    // Another change of the owner is made in their place.
    void forget_failed_changes() noexcept {
        for (uint32_t i = list_.size(); i-- > 0;)
            if (list_[i].kind == TouchKind::owner_change && has_failed(list_[i].when()))
                list_.erase_unordered(i);
    }
    // A command has written the bytes since: whether transfers have failed does not matter any more.
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
    // Forgets the touches in `space`: an operation that waits for all of them comes next. Changes of the owner stay: whether they have
    // succeeded is asked later.
    void clear(SpaceId space) noexcept {
        for (uint32_t i = list_.size(); i-- > 0;)
            if (list_[i].space == space && list_[i].kind != TouchKind::owner_change)
                list_.erase_unordered(i);
    }
    // Adds the touches in `space` of the kinds in `mask` to what has to be waited for.
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
    // For a command that reads the bytes: it fails when a transfer that brings them fails, also one that is complete, or that is
    // not the last on its queue.
    void collect_needed(SpaceId space, WaitList& waits) const {
        for (const Touch& touch : view())
            if (touch.kind == TouchKind::hidden_write && touch.space == space)
                waits.need(touch.when());
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
