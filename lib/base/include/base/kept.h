// Kept: refers to an object that the caller keeps, or keeps it itself.
//
// A command that is submitted at once borrows the objects that the application keeps while the enqueue call runs: counting references
// would be two atomic instructions for each. One that has to wait takes references (`keep`). Not thread-safe.
#pragma once

#include <base/ref.h>

namespace polder {

template <class T>
class Kept {
public:
    // Keeps the object from the beginning.
    explicit(false) Kept(Ref<T> object) : object_(object.get()), reference_(std::move(object)) {}
    // The caller keeps `object` until `keep` is called, or for longer than this refers to it.
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
