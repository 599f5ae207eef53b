// HeldMaps: the maps of one buffer, image or allocation that the application holds.
//
// `Map` is reference counted, derives from HeldMap<Map>, and has `pointer`, `writes()` and `has_failed()`. The list is linked
// through the maps, so that putting one back needs no memory. The owner's lock guards the list.
#pragma once

#include <base/ref.h>

#include <cstddef>
#include <utility>

namespace polder::runtime {

template <class Map>
class HeldMaps;

// A map that can be on one list.
template <class Map>
class HeldMap : public RefCounted {
private:
    friend Map;
    friend class HeldMaps<Map>;
    HeldMap() = default;
    Ref<Map> next_held_;
};

template <class Map>
class HeldMaps {
public:
    HeldMaps() = default;
    HeldMaps(const HeldMaps&) = delete;
    HeldMaps& operator=(const HeldMaps&) = delete;
    ~HeldMaps() { clear(); }

    void add(Ref<Map> map) noexcept {
        Ref<Map>* at = &first_;
        while (*at)
            at = &(*at)->next_held_;
        *at = std::move(map);
    }
    void remove(const Map& map) noexcept {
        for (Ref<Map>* at = &first_; *at; at = &(*at)->next_held_)
            if (at->get() == &map) {
                static_cast<void>(take_at(*at));
                return;
            }
    }
    // Called when the command that took the map has failed: the bytes are still mapped, unless the map command has failed, too.
    void put_back(Ref<Map> map) noexcept {
        if (!map->has_failed())
            add(std::move(map));
    }
    // Removes and returns one map at `pointer`; null when there is none. Of several maps, chooses the newest one for writing, so that
    // the host's writes become visible no later than the application expects.
    [[nodiscard]] Ref<Map> take(const void* pointer) noexcept {
        Ref<Map>* found = nullptr;
        for (Ref<Map>* at = &first_; *at; at = &(*at)->next_held_)
            if ((*at)->pointer == pointer && (!found || (*at)->writes() || !(*found)->writes()))
                found = at;
        return found ? take_at(*found) : nullptr;
    }
    void clear() noexcept {
        while (first_)
            static_cast<void>(take_at(first_));
    }
    template <class Predicate>
    [[nodiscard]] bool any_of(Predicate&& predicate) const {
        for (const Map* map = first_.get(); map; map = map->next_held_.get())
            if (predicate(*map))
                return true;
        return false;
    }
    [[nodiscard]] size_t size() const {
        size_t count = 0;
        for (const Map* map = first_.get(); map; map = map->next_held_.get())
            ++count;
        return count;
    }

private:
    static Ref<Map> take_at(Ref<Map>& link) noexcept {
        Ref<Map> taken = std::move(link);
        link = std::move(taken->next_held_);
        return taken;
    }

    Ref<Map> first_;  // the oldest
};

}  // namespace polder::runtime
