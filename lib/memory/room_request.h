// RoomRequest: one command's request for room in a full memory, while it has the turn of that memory.
//
// It counts what was evicted for it, notes what has kept it from evicting more, and bounds how long it waits for that. Others have one of
// three things: the allocation guard of a storage, memory on its way to a storage or back (both: ChangeInProgress), or the turn of host memory. The
// request waits for the first two until every such change that had begun is over, and looks again; it stands in line for the turn of host memory once,
// and has it until it ends. While it waits, it counts as changing nothing. So requests that cannot be served never wait for each other.
//
// The bound is of the time since the request began, not since its turn came: requests in line wait for the same releases at the same time.
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
    // Since the request began.
    static constexpr std::chrono::milliseconds patience{1000};
    // Since its turn came, if that was late: other threads need a moment of the processor.
    static constexpr std::chrono::milliseconds patience_min{100};
    // So often it waits for others and then finds as little as before.
    static constexpr int vain_waits_max = 8;

    // Its turn has come. `changes`: of the memory; null where nothing is ever evicted.
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
    // No claim of storages is held (Residents): the thread that has the turn may end storages.
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

    // Calls wait() as a thread that changes nothing.
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

    // --- what has kept the last search from evicting more ---
    SpaceSet busy;  // other threads are changing something there
    bool needs_host_turn = false;

private:
    void has_entered(SpaceImpl& host) {
        host_ = &host;
        host_change_.emplace(&host.changes());
    }
    SpaceImpl* host_ = nullptr;  // whose turn it has
    std::optional<ChangeInProgress> host_change_;
};

}  // namespace polder::memory
