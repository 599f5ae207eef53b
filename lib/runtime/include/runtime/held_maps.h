// HeldMaps: the maps of one buffer, image or allocation that the application holds.
//
// `Map` is reference counted and has `pointer`, `writes()` and `has_failed()`. The owner's lock guards the list.
#pragma once

#include <base/ref.h>

#include <vector>

namespace polder::runtime {

template <class Map>
class HeldMaps {
public:
    void add(Ref<Map> map) { maps_.push_back(std::move(map)); }
    void remove(const Map& map) {
        std::erase_if(maps_, [&](const auto& known) { return known.get() == &map; });
    }
    // The command that took the map failed: the bytes are still mapped, unless mapping them failed too.
    void put_back(Ref<Map> map) {
        if (!map->has_failed())
            maps_.push_back(std::move(map));
    }
    // Removes and returns one map at `pointer`; null when there is none. Of several, the newest that writes: what the host
    // wrote becomes visible no later than the application expects.
    [[nodiscard]] Ref<Map> take(const void* pointer) {
        auto found = maps_.end();
        for (auto map = maps_.begin(); map != maps_.end(); ++map)
            if ((*map)->pointer == pointer && (found == maps_.end() || (*map)->writes() || !(*found)->writes()))
                found = map;
        if (found == maps_.end())
            return nullptr;
        Ref<Map> taken = std::move(*found);
        maps_.erase(found);
        return taken;
    }
    void clear() { maps_.clear(); }
    [[nodiscard]] const std::vector<Ref<Map>>& all() const { return maps_; }

private:
    std::vector<Ref<Map>> maps_;  // oldest first
};

}  // namespace polder::runtime
