// Moving bytes between two memory spaces: which driver and queue does it, and how it is staged.
//
// One per domain; any thread. Nothing waits for a device. A move fails only when there is no queue, or no staging memory
// because not both memories have been reserved (staging.h); it throws std::bad_alloc. A move of several operations may
// fail after some of them were submitted: `Moved` then says what is in flight.
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

// One end of a move: the first byte, and how rows lie in it.
struct Place {
    SpaceId space;
    DeviceAddress address;
    driver::RectLayout layout;
};

// `rect` of a replica that begins at `base`.
[[nodiscard]] inline Place place_of(SpaceId space, DeviceAddress base, const StorageRect& rect) {
    return {space, base.plus(rect.offset), rect.layout};
}

struct Move {
    Place from;
    Place to;
    driver::RectShape shape;
};

// What has been submitted for a move, kept up to date after every submission.
struct Moved {
    driver::Timepoint read;  // the source is free
    driver::Timepoint written;  // the target is there
    [[nodiscard]] bool has_begun() const { return read.queue || written.queue; }
};

class Mover {
public:
    explicit Mover(std::span<Space* const> spaces);

    [[nodiscard]] const Topology& topology() const { return topology_; }
    // Null for a space that none of the context's devices has.
    [[nodiscard]] SpaceImpl* space(SpaceId id) const { return spaces_[id.value]; }

    [[nodiscard]] Staging& staging() { return *staging_; }

    // Moves on hidden queues. The lists are what reading the source and writing the target have to wait for. `slots` are
    // for staging; null: the move takes some of its own.
    [[nodiscard]] Result<void> hidden(const Move& move, const WaitList& before_read, const WaitList& before_write,
                                      StagingSlots* slots, Moved& moved);
    // Several moves from one memory to one other, by peer copies: one submission. The lists are for all of them.
    [[nodiscard]] Result<driver::Timepoint> hidden_peer_copies(std::span<const Move> moves, driver::Waits before);

    // Moves for a command of the user, on the queue of a device in `queue_space`. That is possible unless another
    // device's memory is read into host memory: only that device can do it.
    [[nodiscard]] bool is_possible_on_queue(SpaceId from, SpaceId to, SpaceId queue_space) const {
        return topology_.route(from, to) != Route::download || from == queue_space;
    }
    // `submission` is for what runs on the queue; `before_read` for a part that has to run on a hidden one. `slots` as above.
    [[nodiscard]] Result<void> on_queue(driver::Queue& queue, const Move& move, const WaitList& before_read,
                                        const driver::Submission& submission, StagingSlots* slots, Moved& moved);

    // Copies from host memory, on the queue of the target's device.
    [[nodiscard]] driver::Timepoint from_host(driver::Queue& queue, const Move& move,
                                              const driver::Submission& submission) const;
    // Copies within one memory, on the queue of its device.
    [[nodiscard]] static driver::Timepoint within(driver::Queue& queue, const Move& move,
                                                  const driver::Submission& submission);

private:
    // Where the operations of one move go.
    struct StagedPath {
        HiddenQueues::Lease& out;
        driver::Queue& in;
        HiddenQueues::Lease* in_lease;  // null: `in` is the command's own queue
    };
    [[nodiscard]] Result<void> staged(const Move& move, const WaitList& before_read, const StagedPath& path,
                                      const driver::Submission& submission, StagingSlots* slots, Moved& moved);
    // Of every route but `staged`: one operation.
    [[nodiscard]] driver::Timepoint direct(Route route, driver::Queue& queue, const Move& move,
                                           const driver::Submission& submission) const;

    // Of a copy between host memory and a device: may be a reason to register the host's end.
    void note_host_copy(const Place& from, const Place& to, const driver::RectShape& shape) const noexcept;

    std::array<SpaceImpl*, SpaceId::max_spaces> spaces_{};
    Topology topology_;
    std::optional<Staging> staging_;
};

}  // namespace polder::memory
