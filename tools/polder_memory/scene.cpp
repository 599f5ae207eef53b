// One pass over the events, then what only their whole shows: ends of blocks that were never freed, and regions.
#include "scene.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace polder::tool {
namespace {

using trace::Event;
using trace::Kind;
using trace::TimedEvent;
using Space = Scene::Space;
using LastUses = std::unordered_map<uint64_t, uint64_t>;  // when, by storage

// What is true of a space at the moment of the pass.
class SpaceNow {
public:
    explicit SpaceNow(Space& space) : space_(space) {}

    void reserve(const TimedEvent& timed) {
        const Event& event = timed.event;
        reserved_ += event.size;
        space_.regions.push_back({event.address, event.address + event.size});
        note(timed.ns);
    }
    void release(const TimedEvent& timed) {
        reserved_ -= std::min(reserved_, timed.event.size);
        note(timed.ns);
    }
    void lease(const TimedEvent& timed, const LastUses& used) {
        const Event& event = timed.event;
        // A released block stops waiting when it is in use again.
        if (const auto found = waiting_at_.find(event.address); found != waiting_at_.end()) {
            waiting_bytes_ -= found->second->second.bytes;
            waiting_of_[found->second->second.queue].erase(found->second);
            waiting_at_.erase(found);
        }
        const auto [place, is_new] = live_.try_emplace(event.address, space_.blocks.size());
        if (!is_new) {  // that it was freed is missing
            Scene::Block& before = space_.blocks[std::exchange(place->second, space_.blocks.size())];
            end(before, timed.ns, used);
            allocated_ -= before.bytes;
        }
        space_.blocks.push_back({timed.ns, 0, 0, event.address, event.extra, 0});
        allocated_ += event.extra;
        note(timed.ns);
    }
    void free(const TimedEvent& timed, const LastUses& used) {
        const Event& event = timed.event;
        const auto found = live_.find(event.address);
        // Of a block with several timepoints, only the last one counts.
        if ((event.flags & trace::more_follow) != 0 || found == live_.end())
            return;
        Scene::Block& block = space_.blocks[found->second];
        end(block, timed.ns, used);
        live_.erase(found);
        allocated_ -= block.bytes;
        if (event.queue != 0) {
            const Waiting waiting{event.queue, event.address, block.bytes};
            waiting_at_[event.address] = waiting_of_[event.queue].emplace(event.value, waiting);
            waiting_bytes_ += block.bytes;
        }
        note(timed.ns);
    }
    void complete(const TimedEvent& timed) {
        const auto found = waiting_of_.find(timed.event.queue);
        if (found == waiting_of_.end())
            return;
        const auto end = found->second.upper_bound(timed.event.value);
        if (end == found->second.begin())
            return;
        for (auto each = found->second.begin(); each != end; ++each) {
            waiting_bytes_ -= each->second.bytes;
            waiting_at_.erase(each->second.address);
        }
        found->second.erase(found->second.begin(), end);
        note(timed.ns);
    }
    void name(const Event& event) {
        if (const auto found = live_.find(event.address); found != live_.end())
            space_.blocks[found->second].storage = event.storage;
    }
    void end_all(uint64_t ns, const LastUses& used) {
        for (const auto& [address, number] : live_)
            end(space_.blocks[number], ns, used);
    }

private:
    struct Waiting {
        uint32_t queue;
        uint64_t address;
        uint64_t bytes;
    };
    using WaitingOfQueue = std::multimap<uint64_t, Waiting>;  // by the timepoint's value

    static void end(Scene::Block& block, uint64_t ns, const LastUses& used) {
        block.end_ns = ns;
        const auto found = used.find(block.storage);
        block.used_ns = block.storage != 0 && found != used.end() ? found->second : 0;
    }
    void note(uint64_t ns) {
        const uint64_t idle = reserved_ - std::min(reserved_, allocated_);
        const Scene::Level level{ns, allocated_, allocated_ + std::min(waiting_bytes_, idle), reserved_};
        if (!space_.levels.empty() && space_.levels.back().ns == ns)
            space_.levels.back() = level;
        else
            space_.levels.push_back(level);
    }

    Space& space_;
    std::unordered_map<uint64_t, size_t> live_;  // blocks by address
    std::map<uint32_t, WaitingOfQueue> waiting_of_;  // released blocks by queue
    std::unordered_map<uint64_t, WaitingOfQueue::iterator> waiting_at_;
    uint64_t allocated_ = 0;
    uint64_t waiting_bytes_ = 0;
    uint64_t reserved_ = 0;
};

// Each address once. Blocks of regions that the trace does not have, as of one whose beginning is missing, make some of their own.
void join_regions(Space& space) {
    for (const Scene::Block& block : space.blocks)
        space.regions.push_back({block.address, block.address + block.bytes});
    std::ranges::sort(space.regions, {}, &Scene::Region::begin);
    std::vector<Scene::Region> joined;
    for (const Scene::Region& region : space.regions) {
        if (region.begin == region.end)
            continue;
        if (joined.empty() || region.begin > joined.back().end)
            joined.push_back(region);
        else
            joined.back().end = std::max(joined.back().end, region.end);
    }
    space.regions = std::move(joined);
}

class SceneMaker {
public:
    explicit SceneMaker(Scene& scene) : scene_(scene) {}

    void add(const TimedEvent& timed) {
        const Event& event = timed.event;
        const uint64_t ns = timed.ns;
        switch (event.kind) {
        case Kind::space: scene_.spaces[event.space].memory_bytes = event.size; break;
        case Kind::region_reserve: now(event.space).reserve(timed); break;
        case Kind::region_release: now(event.space).release(timed); break;
        case Kind::lease: now(event.space).lease(timed, used_); break;
        case Kind::free: now(event.space).free(timed, used_); break;
        case Kind::completed:
            for (auto& [number, space] : now_)
                space.complete(timed);
            break;
        case Kind::replica: now(event.space).name(event); break;
        case Kind::transfer:
            scene_.transfers[{event.space, event.other_space}].push_back({ns, event.size});
            used_[event.storage] = ns;
            break;
        case Kind::evict: scene_.evictions[event.space].push_back({ns, event.size}); break;
        case Kind::map:
        case Kind::unmap: used_[event.storage] = ns; break;
        case Kind::launch:
            scene_.launches.push_back({ns, event.storage});
            kernel_[timed.thread] = event.storage;
            break;
        case Kind::use: use(timed); break;
        case Kind::out_of_memory: scene_.failures.push_back({ns, event.storage, event.size, event.space}); break;
        case Kind::refused: scene_.refusals.push_back({ns, event.storage, event.size, event.space}); break;
        default: break;
        }
    }
    void finish() {
        for (auto& [number, space] : now_)
            space.end_all(scene_.end_ns, used_);
        for (auto& [number, space] : scene_.spaces)
            join_regions(space);
    }

private:
    SpaceNow& now(uint32_t space) { return now_.try_emplace(space, scene_.spaces[space]).first->second; }
    // By the thread's last launch.
    void use(const TimedEvent& timed) {
        const uint64_t storage = timed.event.storage;
        used_[storage] = timed.ns;
        const auto launch = kernel_.find(timed.thread);
        if (launch == kernel_.end())
            return;
        std::vector<uint64_t>& kernels = scene_.kernels_of[storage];
        if (kernels.size() < Scene::kernels_max && std::ranges::find(kernels, launch->second) == kernels.end())
            kernels.push_back(launch->second);
    }

    Scene& scene_;
    std::map<uint32_t, SpaceNow> now_;
    LastUses used_;
    std::unordered_map<uint32_t, uint64_t> kernel_;  // texts, by thread
};

}  // namespace

Scene make_scene(const trace::TraceFile& trace) {
    Scene scene;
    if (!trace.events.empty())
        scene.end_ns = std::max<uint64_t>(1, trace.events.back().ns);
    SceneMaker maker{scene};
    for (const TimedEvent& timed : trace.events)
        maker.add(timed);
    maker.finish();
    return scene;
}

}  // namespace polder::tool
