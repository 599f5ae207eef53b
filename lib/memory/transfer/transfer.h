// Mover: copies bytes between two memory spaces. It chooses the driver and the queue, and stages copies that no driver can make directly.
//
// One per domain; any thread. It never waits for a device. A move fails only when there is no queue, or no staging memory
// because not both memories have been reserved (staging.h); it may throw std::bad_alloc. A move of several operations may
// fail after some of them were submitted: `Moved` then has the operations in flight.
#pragma once

#include "space/space_impl.h"
#include "space/topology.h"
#include "staging.h"

#include <base/wait_list.h>
#include <memory/domain.h>

#include <array>
#include <optional>
#include <span>

namespace polder::memory {

// One end of a move: the address of the first byte, and the layout of the rows.
struct Place {
    SpaceId space;
    DeviceAddress address;
    driver::RectLayout layout;
};

// The place of `rect` in a replica with this base address.
[[nodiscard]] inline Place place_of(SpaceId space, DeviceAddress base, const StorageRect& rect) {
    return {space, base.plus(rect.offset), rect.layout};
}

struct Move {
    Place from;
    Place to;
    driver::RectShape shape;
};

// The operations that were submitted for a move; updated after every submission.
struct Moved {
    driver::Timepoint read;  // when it is complete, the source has been read
    driver::Timepoint written;  // when it is complete, the target has been written
    [[nodiscard]] bool has_begun() const { return read.queue || written.queue; }
};

class Mover {
public:
    explicit Mover(std::span<Space* const> spaces);

    [[nodiscard]] const Topology& topology() const { return topology_; }
    // Null for a space that none of the context's devices has.
    [[nodiscard]] SpaceImpl* space(SpaceId id) const { return spaces_[id.value]; }

    [[nodiscard]] Staging& staging() { return *staging_; }

    // Moves on hidden queues. Reading the source waits for `before_read`, writing the target for `before_write`. `slots` are
    // staging slots; null: the move takes its own when it needs some.
    [[nodiscard]] Result<void> hidden(const Move& move, const WaitList& before_read, const WaitList& before_write,
                                      StagingSlots* slots, Moved& moved);
    // The same for every route except `staged`. The move waits for `before`.
    [[nodiscard]] Result<void> hidden_direct(Route route, const Move& move, driver::Waits before, Moved& moved);
    // Several moves from one memory to another by peer copies, in one submission. All of them wait for `before`.
    [[nodiscard]] Result<driver::Timepoint> hidden_peer_copies(std::span<const Move> moves, driver::Waits before);

    // Whether a move for a user's command can run on the queue of a device in `queue_space`. It cannot when another
    // device's memory is read into host memory, which only that device can do.
    [[nodiscard]] bool is_possible_on_queue(SpaceId from, SpaceId to, SpaceId queue_space) const {
        return topology_.route(from, to) != Route::download || from == queue_space;
    }
    // Moves on `queue`. The operation there uses `submission`; a part that has to run on a hidden queue waits for `before_read`. `slots` as above.
    [[nodiscard]] Result<void> on_queue(driver::Queue& queue, const Move& move, const WaitList& before_read,
                                        const driver::Submission& submission, StagingSlots* slots, Moved& moved);

    // Copies from host memory, on the queue of the target's device.
    [[nodiscard]] driver::Timepoint from_host(driver::Queue& queue, const Move& move,
                                              const driver::Submission& submission) const;
    // Copies within one memory, on the queue of its device.
    [[nodiscard]] static driver::Timepoint within(driver::Queue& queue, const Move& move,
                                                  const driver::Submission& submission);

private:
    // The queues of one staged move.
    struct StagedPath {
        HiddenQueues::Lease& out;
        driver::Queue& in;
        HiddenQueues::Lease* in_lease;  // null: `in` is the command's own queue
    };
    [[nodiscard]] Result<void> staged(const Move& move, const WaitList& before_read, const StagedPath& path,
                                      const driver::Submission& submission, StagingSlots* slots, Moved& moved);
    // Submits the one operation of every route except `staged`.
    [[nodiscard]] driver::Timepoint direct(Route route, driver::Queue& queue, const Move& move,
                                           const driver::Submission& submission) const;

    // Counts a copy between host memory and a device, after which the host's end may be registered (adaptive_pins.h).
    void note_host_copy(const Place& from, const Place& to, const driver::RectShape& shape) const noexcept;

    std::array<SpaceImpl*, SpaceId::max_spaces> spaces_{};
    Topology topology_;
    std::optional<Staging> staging_;
};

}  // namespace polder::memory
