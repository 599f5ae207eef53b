// WaitList: the timepoints that one command waits for.
//
// It has two parts. First the required timepoints: the command fails when one of them fails (its events, parts of the command
// that were submitted before, and transfers of bytes that it reads). They may be several per queue, of the waiting queue itself, or complete with a failure.
// Then the timepoints that only order the command: at most one per queue (the latest), none that is complete, none of
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
    // The command fails when `point` has failed. A point that has succeeded is left out. Before the first `add`.
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
    // The command needs what the operation of `point` does, and fails when that fails, whatever comes later on its queue. Any time. One
    // point that has failed is enough.
    void need(driver::Timepoint point) {
        const bool failed = has_failed(point);
        if (point.is_complete() && !failed)
            return;
        for (uint32_t i = failed ? 0 : looked_at(); i < required_; ++i)
            if (list_[i] == point || (failed && has_failed(list_[i])))
                return;
        list_.push_back(point);
        std::swap(list_[required_++], list_[list_.size() - 1]);
    }
    // The command comes after `point`, whether that succeeds or fails.
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
    // Everything that another list waits for. What that list requires, this one needs.
    void add_all(const WaitList& other) {
        for (uint32_t i = 0; i < other.required_; ++i)
            need(other.list_[i]);
        for (uint32_t i = other.required_; i < other.list_.size(); ++i)
            add(other.list_[i]);
    }
    // Adds a part of the command itself, which was submitted before.
    void add_part(driver::Timepoint point) {
        if (point.queue)
            list_.push_back(point);
    }
    void add(driver::Waits points) {
        for (const driver::Timepoint& point : points)
            add(point);
    }
    // Afterwards `count` calls of add allocate nothing.
    void make_room(uint32_t count) { list_.reserve(list_.size() + count); }
    // Chooses the queue that waits, which was not known before: order on this queue needs no wait.
    void set_waiting(const driver::Queue* waiting) {
        waiting_ = waiting;
        for (uint32_t i = list_.size(); i-- > required_;)
            if (list_[i].queue == waiting)
                list_.erase_unordered(i);
    }
    // Removes what is complete.
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
    // Where the required points begin that a point is compared with: a few, because a command may need thousands.
    [[nodiscard]] uint32_t looked_at() const { return required_ > 16 ? required_ - 16 : 0; }

    const driver::Queue* waiting_;
    uint32_t required_ = 0;  // the first this many
    SmallVector<driver::Timepoint, 8> list_;
};

}  // namespace polder
