// Topology: the routes for copies between memory spaces, as plain data, so that the planner can be tested without devices.
// Immutable after it was built; any thread.
#pragma once

#include <memory/space.h>

#include <algorithm>
#include <polder/driver.h>
#include <polder/types.h>
#include <vector>

namespace polder::memory {

// True for host memory and for the application's memory, which both have host addresses.
[[nodiscard]] constexpr bool is_host_memory(SpaceId space) { return space.is_host() || space == application_space; }

enum class Route : uint8_t {
    within,  // a copy in one memory, or between two places of host memory
    upload,  // a device reads host memory
    download,  // a device writes host memory
    peer,  // a device reads another device's memory
    staged,  // through a staging buffer in host memory
};

class Topology {
public:
    // `reader`'s device can read the memory of `other`.
    void add_peer(SpaceId reader, SpaceId other, driver::PeerLink link = {}) {
        peers_[reader.value].insert(other);
        std::vector<Peer>& nearest = nearest_[reader.value];
        const auto farther =
            std::ranges::find_if(nearest, [&link](const Peer& known) { return link.is_nearer_than(known.link); });
        nearest.insert(farther, {other, link});
    }

    [[nodiscard]] Route route(SpaceId from, SpaceId to) const {
        if (from == to || (is_host_memory(from) && is_host_memory(to)))
            return Route::within;
        if (is_host_memory(to))
            return Route::download;
        if (is_host_memory(from))
            return Route::upload;
        return peers_[to.value].contains(from) ? Route::peer : Route::staged;
    }

    // Whether two of `spaces`, all of them devices', can only exchange bytes through host memory.
    [[nodiscard]] bool stages(SpaceSet spaces) const {
        for (SpaceSet rest = spaces; !rest.empty(); rest.erase(rest.first())) {
            SpaceSet reached = peers_[rest.first().value];
            reached.insert(rest.first());
            if ((spaces.bits & ~reached.bits) != 0)
                return true;
        }
        return false;
    }

    // The holder to copy from. A peer is preferred, because that copy uses one link and not the host's memory; staging is last, because it
    // uses two links. Of several peers the nearest one is chosen, and of equally near ones the one that was added first.
    [[nodiscard]] SpaceId best_source(SpaceSet holders, SpaceId to) const {
        if (holders.count() == 1) [[likely]]
            return holders.first();
        if (holders.contains(to))
            return to;
        if (is_host_memory(to) && holders.contains(other_host_place(to)))
            return other_host_place(to);
        for (const Peer& peer : nearest_[to.value])
            if (holders.contains(peer.space))
                return peer.space;
        if (holders.contains(host_space))
            return host_space;
        if (holders.contains(application_space))
            return application_space;
        return holders.first();
    }

private:
    [[nodiscard]] static constexpr SpaceId other_host_place(SpaceId place) {
        return place.is_host() ? application_space : host_space;
    }
    struct Peer {
        SpaceId space;
        driver::PeerLink link;
    };
    SpaceSet peers_[SpaceId::max_spaces];
    std::vector<Peer> nearest_[SpaceId::max_spaces];  // for each reader, its peers, the nearest one first
};

}  // namespace polder::memory
