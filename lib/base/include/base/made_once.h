// MadeOnce: values by key, each made by the first thread that asks for it. A thread that asks for a value that another one is making
// waits for it; threads that ask for other values do not wait. A value that could not be made is made again for the next thread.
//
// Any thread may call any function. Values stay where they are as long as the MadeOnce.
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
    // `make` returns a Result<Value>. It runs without a lock, may throw, and must not ask for the same key.
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

    // Null when there is none yet.
    [[nodiscard]] const Value* find(const Key& key) const {
        const Lock lock(mutex_);
        const auto found = places_.find(key);
        const bool is_made = found != places_.end() && !found->second.is_being_made && found->second.value;
        return is_made ? &*found->second.value : nullptr;
    }
    // Whether it is made, or a thread is making it.
    [[nodiscard]] bool is_begun(const Key& key) const {
        const Lock lock(mutex_);
        const auto found = places_.find(key);
        return found != places_.end() && (found->second.is_being_made || found->second.value);
    }

private:
    struct Place {
        bool is_being_made = false;  // then its value belongs to the thread that makes it
        std::optional<Value> value;
    };

    // With `is_being_made` when the caller has to make the value.
    Place* take(const Key& key) {
        const Lock lock(mutex_);
        Place& place = places_[key];
        while (place.is_being_made)
            changed_.wait(mutex_);
        if (!place.value)
            place.is_being_made = true;
        return &place;  // with a value, it does not change any more
    }

    mutable Mutex mutex_;
    ConditionVariable changed_;
    std::map<Key, Place> places_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder
