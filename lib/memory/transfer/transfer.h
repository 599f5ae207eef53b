// Moving bytes between two memory spaces: which driver and queue does it, and how it is staged.
//
// One per domain, called under its lock; nothing waits. Fails only when a queue cannot be had, or staging memory for
// memories of which not both have been reserved (staging.h).
#pragma once

#include "allocation/space_impl.h"
#include "residency/timeline.h"
#include "staging.h"
#include "topology.h"

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

struct Moved {
    driver::Timepoint read;     // the source is free
    driver::Timepoint written;  // the target is there
};

class Mover {
public:
    explicit Mover(std::span<Space* const> spaces);

    [[nodiscard]] const Topology& topology() const { return topology_; }
    // Null for a space that none of the context's devices has.
    [[nodiscard]] SpaceImpl* space(SpaceId id) const { return spaces_[id.value]; }

    [[nodiscard]] Staging& staging() { return *staging_; }

    // Moves on hidden queues. The lists are what reading the source and writing the target have to wait for.
    [[nodiscard]] Result<Moved> hidden(const Move& move, const WaitList& before_read, const WaitList& before_write);

    // Moves for a command of the user, on the queue of a device in `queue_space`. That is possible unless another
    // device's memory is read into host memory: only that device can do it.
    [[nodiscard]] bool is_possible_on_queue(SpaceId from, SpaceId to, SpaceId queue_space) const {
        return topology_.route(from, to) != Route::download || from == queue_space;
    }
    // `submission` is for what runs on the queue; `before_read` for a part that has to run on a hidden one.
    [[nodiscard]] Result<Moved> on_queue(driver::Queue& queue, const Move& move, driver::Waits before_read,
                                         const driver::Submission& submission);

private:
    [[nodiscard]] Result<Moved> staged(const Move& move, driver::Waits before_read, HiddenQueues::Lease& out,
                                       driver::Queue& in, const driver::Submission& submission);
    [[nodiscard]] driver::Timepoint peer(driver::Queue& queue, const Move& move, const driver::Submission& submission);

    std::array<SpaceImpl*, SpaceId::max_spaces> spaces_{};
    Topology topology_;
    std::optional<Staging> staging_;
};

} // namespace polder::memory
