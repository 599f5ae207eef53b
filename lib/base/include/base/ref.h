// Intrusive reference counting.
//
// `RefCounted` starts with one reference, owned by the creator of the object; `Ref<T>` owns one.
// Taking over and sharing are named: `Ref<T>::adopt(p)` takes over the caller's reference,
// `Ref<T>::share(p)` adds one. The counter may be used from any thread.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <utility>

namespace polder {

class RefCounted {
public:
    RefCounted() = default;
    RefCounted(const RefCounted&) = delete;
    RefCounted& operator=(const RefCounted&) = delete;

    void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() const {
        // When the count is one, no other thread can add a reference. So the last release, which is the only one of most
        // short-lived objects, needs no atomic read-modify-write instruction.
        if (is_unique() || references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
    }
    // Whether the caller's reference is the only one. Then no other thread has a reference from which it could add one.
    [[nodiscard]] bool is_unique() const { return references_.load(std::memory_order_acquire) == 1; }

protected:
    virtual ~RefCounted() = default;

private:
    mutable std::atomic<uint32_t> references_{1};
};

template <class T>
class [[nodiscard]] Ref {
public:
    constexpr Ref() = default;
    constexpr Ref(std::nullptr_t) {}
    static Ref adopt(T* object) { return Ref{object}; }
    static Ref share(T* object) {
        if (object)
            object->retain();
        return Ref{object};
    }
    Ref(const Ref& other) : object_(other.object_) {
        if (object_)
            object_->retain();
    }
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    template <class U>
        requires std::is_convertible_v<U*, T*>
    Ref(const Ref<U>& other) : Ref(share(other.get())) {}
    template <class U>
        requires std::is_convertible_v<U*, T*>
    Ref(Ref<U>&& other) noexcept : object_(other.detach()) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_)
            object_->release();
    }

    [[nodiscard]] T* get() const { return object_; }
    T* operator->() const {
        assert(object_);
        return object_;
    }
    T& operator*() const {
        assert(object_);
        return *object_;
    }
    explicit operator bool() const { return object_ != nullptr; }
    // Gives the reference to the caller.
    [[nodiscard]] T* detach() { return std::exchange(object_, nullptr); }
    friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

private:
    explicit Ref(T* object) : object_(object) {}
    T* object_ = nullptr;
};

template <class T, class... Arguments>
Ref<T> make_ref(Arguments&&... arguments) {
    return Ref<T>::adopt(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace polder
