// ChangeInProgress: a thread is about to change which storages have memory in one space.
//
// While it does, a search for victims may miss a storage: the thread has leased memory and not yet given it to the storage, has the allocation
// guard of a storage, or destroys one. A search that finds too little waits for the changes that had begun before (EarlierChanges), then looks again:
// afterwards everything is where a search finds it. A thread that waits for other threads is not changing anything, and ends its change
// meanwhile: so two requests that find no room never wait for each other.
//
// One object belongs to one thread. Beginning and ending are two plain stores for most threads.
#pragma once

#include "count_by_thread.h"

namespace polder::memory {

class ChangeInProgress {
public:
    // Null: no search is ever made there.
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

// Those of other threads that had begun when the object was made, and have not been seen to end.
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
