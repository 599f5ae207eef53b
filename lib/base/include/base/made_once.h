// MadeOnce: a map from keys to values. The first thread that requests a value makes it. Other threads that request the same value wait
// meanwhile; threads that request other values do not. When making a value has failed, the next thread that requests it tries again.
//
// Any thread may call any function. Values keep their addresses until the MadeOnce is destroyed.
#pragma once

#include <base/mutex.h>
#include <base/scope_exit.h>

#include <map>
#include <optional>
#include <polder/result.h>

namespace polder {

template <class Key, class Value>
class MadeOnce {
public:
    // `make` makes the value if there is none. It returns a Result<Value>, runs without a lock, may throw, and must not request `key`.
    template <class Make>
    [[nodiscard]] Result<const Value*> get(const Key& key, const Make& make) {
        Place* const place = take(key);
        if (!place->is_being_made)
            return &*place->value;
        const ScopeExit end([&] {
            const Lock lock(mutex_);
            place->is_being_made = false;
            changed_.notify_all();
        });
        Result<Value> made = make();
        if (!made)
            return fail(made.error());
        place->value.emplace(std::move(*made));
        return &*place->value;
    }

    // Null when the value has not been made.
    [[nodiscard]] const Value* find(const Key& key) const {
        const Lock lock(mutex_);
        const auto found = places_.find(key);
        const bool is_made = found != places_.end() && !found->second.is_being_made && found->second.value;
        return is_made ? &*found->second.value : nullptr;
    }
    // Whether the value has been made, or a thread is making it.
    [[nodiscard]] bool is_begun(const Key& key) const {
        const Lock lock(mutex_);
        const auto found = places_.find(key);
        return found != places_.end() && (found->second.is_being_made || found->second.value);
    }

private:
    struct Place {
        bool is_being_made = false;  // then only the thread that makes the value may access it
        std::optional<Value> value;
    };

    // Returns a place with `is_being_made` set when the caller has to make the value.
    Place* take(const Key& key) {
        const Lock lock(mutex_);
        Place& place = places_[key];
        while (place.is_being_made)
            changed_.wait(mutex_);
        if (!place.value)
            place.is_being_made = true;
        return &place;  // has a value, which does not change any more
    }

    mutable Mutex mutex_;
    ConditionVariable changed_;
    std::map<Key, Place> places_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder
