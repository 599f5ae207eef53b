// RoomRequest: one command's request for room in a full memory, while it has the turn of that memory.
//
// It counts the bytes that were evicted for it, notes why it could not evict more, and bounds how long it waits for other threads. A thread can
// keep it from evicting in three ways: it has the allocation guard of a storage, it is adding or removing a storage's memory (in both cases it has
// a ChangeInProgress), or it has the turn of host memory. The request waits until all changes in progress have ended, then searches again. It waits
// for the turn of host memory at most once, and keeps it until it ends. While it waits, its own ChangeInProgress has ended, so requests never wait for each other.
//
// The time limit counts from the beginning of the request, not from its turn, because requests in line wait for the same releases at the same time.
//
// One thread. Sizes are bytes.
#pragma once

#include "space/change_in_progress.h"
#include "space/space_impl.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace polder::memory {

class RoomRequest {
public:
    using Clock = std::chrono::steady_clock;
    // The time limit for waiting, from the beginning of the request.
    static constexpr std::chrono::milliseconds patience{1000};
    // The least time to wait after its turn has come: other threads need some processor time to end their changes.
    static constexpr std::chrono::milliseconds patience_min{100};
    // How often in succession the request may wait for other threads without being able to evict more afterwards.
    static constexpr int vain_waits_max = 8;

    // Made when the request's turn has come. `changes`: the counter of the memory's changes; null when nothing is ever evicted.
    RoomRequest(Clock::time_point began, CountByThread* changes, Clock::time_point now = Clock::now())
        : give_up_at(std::max(began + patience, now + patience_min)), change(changes) {}
    ~RoomRequest() { leave_host_turn(); }
    RoomRequest(const RoomRequest&) = delete;
    RoomRequest& operator=(const RoomRequest&) = delete;

    [[nodiscard]] std::string report() const;
    [[nodiscard]] bool has_evicted() const { return dropped_bytes + written_bytes + compacted_bytes != 0; }

    // --- the turn of host memory, for a request for room elsewhere ---
    [[nodiscard]] bool has_host_turn() const { return host_ != nullptr; }
    // False when another thread has it.
    [[nodiscard]] bool try_enter_host_turn(SpaceImpl& host) {
        if (!has_host_turn() && host.turns().try_enter())
            has_entered(host);
        return has_host_turn();
    }
    // The caller must not hold a claim of storages (Residents), because the thread that has the turn may destroy storages.
    void enter_host_turn(SpaceImpl& host, FairTurns::Flow& flow, uint64_t cost) {
        change.end();
        host.turns().enter(flow, cost);
        change.begin();
        has_entered(host);
    }
    void leave_host_turn() {
        if (!has_host_turn())
            return;
        host_change_.reset();
        host_->turns().leave();
        host_ = nullptr;
    }

    // Calls wait() while this thread's changes in progress have ended.
    template <class Wait>
    void without_changes(Wait&& wait) {
        change.end();
        if (host_change_)
            host_change_->end();
        wait();
        if (host_change_)
            host_change_->begin();
        change.begin();
    }

    const Clock::time_point give_up_at;
    ChangeInProgress change;
    int vain_waits = 0;

    uint64_t dropped_bytes = 0;
    uint64_t written_bytes = 0;
    uint64_t compacted_bytes = 0;

    // --- why the last search could not evict more ---
    SpaceSet busy;  // spaces in which other threads had changes in progress
    bool needs_host_turn = false;

private:
    void has_entered(SpaceImpl& host) {
        host_ = &host;
        host_change_.emplace(&host.changes());
    }
    SpaceImpl* host_ = nullptr;  // host memory, while the request has its turn
    std::optional<ChangeInProgress> host_change_;
};

}  // namespace polder::memory
