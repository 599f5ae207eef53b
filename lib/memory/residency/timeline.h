// What the residency remembers about commands in flight: wait lists, and the touches of a byte range.
// Values without locks; used under the domain's lock.
#pragma once

#include <base/small_vector.h>

#include <polder/driver.h>
#include <polder/types.h>

namespace polder::memory {

// Timepoints to wait for: at most one per queue (the latest), none that is complete, none of the queue that waits
// itself, because a queue executes in order.
class WaitList {
public:
    explicit WaitList(const driver::Queue* waiting = nullptr) : waiting_(waiting) {}

    void reset(const driver::Queue* waiting) {
        waiting_ = waiting;
        list_.clear();
    }
    void add(driver::Timepoint point) {
        if (point.queue == waiting_ || point.is_complete())
            return;
        for (driver::Timepoint& known : list_) {
            if (known.queue == point.queue) {
                known.value = std::max(known.value, point.value);
                return;
            }
        }
        list_.push_back(point);
    }
    void add(driver::Waits points) {
        for (const driver::Timepoint& point : points)
            add(point);
    }
    [[nodiscard]] driver::Waits view() const { return list_.view(); }
    [[nodiscard]] bool empty() const { return list_.empty(); }

private:
    const driver::Queue* waiting_;
    SmallVector<driver::Timepoint, 8> list_;
};

// How something in flight uses bytes in one space. `user` is an operation of the application, ordered against
// others of its kind by the application's events; `hidden` is an operation that only this layer knows.
enum class TouchKind : uint8_t { user_read = 1, user_write = 2, hidden_read = 4, hidden_write = 8 };
inline constexpr uint8_t any_write = 2 | 8;
inline constexpr uint8_t any_hidden = 4 | 8;
inline constexpr uint8_t any_touch = 15;

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
    // Remembers one more, and forgets what is complete when there is not yet one of its kind.
    void add(SpaceId space, TouchKind kind, driver::Timepoint when) {
        for (Touch& touch : list_) {
            if (touch.queue == when.queue && touch.space == space && touch.kind == kind) {
                touch.value = std::max(touch.value, when.value);
                return;
            }
        }
        add_new(space, kind, when);
    }
    void prune() {
        for (uint32_t i = list_.size(); i-- > 0;)
            if (list_[i].when().is_complete())
                list_.erase_unordered(i);
    }
    // Forgets the touches in `space`: something that waited for all of them comes next.
    void clear(SpaceId space) {
        for (uint32_t i = list_.size(); i-- > 0;)
            if (list_[i].space == space)
                list_.erase_unordered(i);
    }
    // Adds the touches in `space` of the kinds in `mask` to what has to be waited for.
    void collect(SpaceId space, uint8_t mask, WaitList& waits) const {
        for (const Touch& touch : view())
            if (touch.space == space && (static_cast<uint8_t>(touch.kind) & mask) != 0)
                waits.add(touch.when());
    }
    [[nodiscard]] bool empty() const { return list_.empty(); }
    [[nodiscard]] std::span<const Touch> view() const { return list_.view(); }
    friend bool operator==(const Touches& a, const Touches& b) {
        return std::equal(a.list_.begin(), a.list_.end(), b.list_.begin(), b.list_.end());
    }

private:
    [[gnu::noinline]] void add_new(SpaceId space, TouchKind kind, driver::Timepoint when) {
        prune();
        if (!when.is_complete())
            list_.push_back({when.queue, when.value, space, kind});
    }

    SmallVector<Touch, 3> list_;
};

} // namespace polder::memory
