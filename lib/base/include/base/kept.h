// Kept: refers to an object either without a reference (borrowed), or with one.
//
// A command that is submitted at once borrows its objects: the application keeps them while the enqueue call runs, and counting a
// reference would cost two atomic instructions for each. A command that has to wait takes references (`keep`). Not thread-safe.
#pragma once

#include <base/ref.h>

namespace polder {

template <class T>
class Kept {
public:
    // Owns a reference from the beginning.
    explicit(false) Kept(Ref<T> object) : object_(object.get()), reference_(std::move(object)) {}
    // Borrows `object`. The caller makes sure that it exists until `keep` is called or this Kept is destroyed.
    static Kept borrow(T& object) { return Kept{&object}; }

    void keep() {
        if (!reference_)
            reference_ = Ref<T>::share(object_);
    }
    [[nodiscard]] Ref<T> share() const { return Ref<T>::share(object_); }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }

private:
    explicit Kept(T* object) : object_(object) {}

    T* object_;
    Ref<T> reference_;  // null: borrowed
};

}  // namespace polder
