// WaitList: the timepoints that one command waits for.
//
// It has two parts. The first part are the required timepoints: the command fails when one of them fails. They are its events, earlier parts
// of the command, and transfers of bytes that it reads. There may be several of one queue, also of the waiting queue, and some that have failed.
// The second part are timepoints that only order the command: at most one per queue (the latest), none that is complete, none of
// the queue that waits, because a queue executes in order.
//
// Values without locks.
#pragma once

#include <base/small_vector.h>

#include <polder/driver.h>
#include <utility>

namespace polder {

// True when the operation is complete and has failed.
[[nodiscard]] inline bool has_failed(driver::Timepoint point) {
    return point.queue && point.is_complete() && point.queue->status(point.value) != Status::success;
}

class WaitList {
public:
    explicit WaitList(const driver::Queue* waiting = nullptr) : waiting_(waiting) {}

    void reset(const driver::Queue* waiting) {
        waiting_ = waiting;
        list_.clear();
        required_ = 0;
    }
    // The command waits for `point` and fails when it fails. A point that has succeeded is left out. Call it before the first `add`.
    void require(driver::Timepoint point) {
        if (point.queue && (!point.is_complete() || has_failed(point))) {
            list_.push_back(point);
            ++required_;
        }
    }
    void require(driver::Waits points) {
        for (const driver::Timepoint& point : points)
            require(point);
    }
    // Like `require`, but may be called after `add`. A later point of the same queue does not replace `point`, because it may succeed
    // when `point` fails. Of the points that have failed, one is enough.
    void need(driver::Timepoint point) {
        if (point.is_complete()) [[unlikely]] {
            if (has_failed(point))
                need_failed(point);
            return;
        }
        for (uint32_t i = looked_at(); i < required_; ++i)
            if (list_[i] == point)
                return;
        append_required(point);
    }
    // The command executes after `point`, whether `point` succeeds or fails.
    void add(driver::Timepoint point) {
        if (point.queue == waiting_ || point.is_complete())
            return;
        for (uint32_t i = looked_at(); i < list_.size(); ++i) {
            driver::Timepoint& known = list_[i];
            if (known.queue != point.queue)
                continue;
            if (known.value >= point.value)
                return;
            if (i >= required_) {
                known.value = point.value;
                return;
            }
        }
        list_.push_back(point);
    }
    // Adds all points of another list: its required points by `need`, the others by `add`.
    void add_all(const WaitList& other) {
        for (uint32_t i = 0; i < other.required_; ++i)
            need(other.list_[i]);
        for (uint32_t i = other.required_; i < other.list_.size(); ++i)
            add(other.list_[i]);
    }
    // Adds a part of the command itself that was submitted before.
    void add_part(driver::Timepoint point) {
        if (point.queue)
            list_.push_back(point);
    }
    void add(driver::Waits points) {
        for (const driver::Timepoint& point : points)
            add(point);
    }
    // Afterwards, `count` calls of `add` allocate no memory.
    void make_room(uint32_t count) { list_.reserve(list_.size() + count); }
    // Sets the queue that waits, and removes the ordering points of this queue, which executes in order.
    void set_waiting(const driver::Queue* waiting) {
        waiting_ = waiting;
        for (uint32_t i = list_.size(); i-- > required_;)
            if (list_[i].queue == waiting)
                list_.erase_unordered(i);
    }
    // Removes the points that are complete. Only for lists without required points.
    void prune() {
        for (uint32_t i = list_.size(); i-- > 0;)
            if (list_[i].is_complete())
                list_.erase_unordered(i);
    }
    // True when a command that waits for `others` also waits for everything in this list.
    [[nodiscard]] bool is_implied_by(driver::Waits others) const {
        return std::ranges::all_of(view(), [&](const driver::Timepoint& mine) {
            return mine.is_complete() || std::ranges::any_of(others, [&](const driver::Timepoint& other) {
                       return other.queue == mine.queue && other.value >= mine.value;
                   });
        });
    }
    [[nodiscard]] driver::Waits view() const { return list_.view(); }
    [[nodiscard]] bool empty() const { return list_.empty(); }

private:
    [[gnu::noinline]] void need_failed(driver::Timepoint point) {
        for (uint32_t i = 0; i < required_; ++i)
            if (list_[i] == point || has_failed(list_[i]))
                return;
        append_required(point);
    }
    void append_required(driver::Timepoint point) {
        list_.push_back(point);
        std::swap(list_[required_++], list_[list_.size() - 1]);
    }
    // A new point is compared with the last 16 required points only, because a command may have thousands. Returns where these begin.
    [[nodiscard]] uint32_t looked_at() const { return required_ > 16 ? required_ - 16 : 0; }

    const driver::Queue* waiting_;
    uint32_t required_ = 0;  // how many points at the beginning of list_ are required
    SmallVector<driver::Timepoint, 8> list_;
};

}  // namespace polder
