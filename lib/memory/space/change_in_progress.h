// ChangeInProgress: while it exists, the thread is changing which storages have memory in one space.
//
// Meanwhile a search for victims may miss memory: the thread has leased memory but not yet given it to a storage, has the allocation
// guard of a storage, or destroys a storage. A search that finds too little waits until the changes that began before it have ended
// (EarlierChanges), then searches again, and finds the memory of these changes. A thread ends its change while it waits for other threads, so
// that two requests that find no room never wait for each other.
//
// One object belongs to one thread. Beginning and ending are two plain stores for most threads.
#pragma once

#include "count_by_thread.h"

namespace polder::memory {

class ChangeInProgress {
public:
    // `changes` is null for a space in which no search is ever made.
    explicit ChangeInProgress(CountByThread* changes) : changes_(changes) { begin(); }
    ~ChangeInProgress() {
        if (has_begun_)
            end();
    }
    ChangeInProgress(const ChangeInProgress&) = delete;
    ChangeInProgress& operator=(const ChangeInProgress&) = delete;

    void begin() noexcept {
        has_begun_ = true;
        count(1);
    }
    void end() noexcept {
        has_begun_ = false;
        count(-1);
    }

private:
    void count(int64_t change) noexcept {
        if (changes_)
            changes_->add(change);
    }
    CountByThread* const changes_;
    bool has_begun_ = false;
};

// The changes of other threads that had begun when this object was made, and have not been seen to end.
class EarlierChanges {
public:
    explicit EarlierChanges(const CountByThread& changes) : changes_(&changes), parts_(changes.nonzero_parts()) {}

    // A thread that has ended its change and begun another one counts as ended as soon as it was seen between the two.
    [[nodiscard]] bool have_ended() noexcept {
        if (parts_ != 0)
            parts_ &= changes_->nonzero_parts();
        return parts_ == 0;
    }

private:
    const CountByThread* changes_;
    uint32_t parts_;
};

}  // namespace polder::memory
