// Recycled: memory of short-lived objects, kept by the thread that freed it last for its next object of the same type.
//
//   class Event final : public Object, public Recycled<Event> { ... };
//
// gives `new Event` and `delete` of one a list of their own: two loads and two stores, where the C library's
// allocator takes several times as much. Only for types that are `final` and made and released again and again. A thread
// keeps at most `count_max` pieces; everything beyond, and everything when it ends, goes back to the C library. So
// nothing is lost when one thread makes objects and another releases them.
//
// Any thread. Under the address and thread sanitizers every object has fresh memory, so that late uses are found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace polder {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool recycling = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool recycling = false;
#else
inline constexpr bool recycling = true;
#endif
#else
inline constexpr bool recycling = true;
#endif

template <class T>
class Recycled {
public:
    static void* operator new(size_t size) {
        static_assert(std::is_final_v<T> && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        if (!recycling || !list_.head)
            return ::operator new(size);
        Piece* const piece = list_.head;
        list_.head = piece->next;
        --list_.count;
        return piece;
    }
    static void operator delete(void* memory) {
        if (!recycling || list_.count == list_.room) {
            drop(memory);
            return;
        }
        keep(memory);
    }

private:
    friend T;
    Recycled() = default;

    static constexpr uint32_t count_max = 32;
    struct Piece {
        Piece* next;
    };
    // Trivially destroyed, so that destructors which run late in the life of a thread may still use it.
    struct List {
        Piece* head = nullptr;
        uint32_t count = 0;
        uint32_t room = 0;
        bool seen = false;
    };
    struct EndOfThread {
        ~EndOfThread() {
            list_.room = 0;
            for (Piece* piece = list_.head; piece;) {
                void* const memory = piece;
                piece = piece->next;
                ::operator delete(memory);
            }
            list_.head = nullptr;
            list_.count = 0;
        }
    };

    static void keep(void* memory) {
        list_.head = new (memory) Piece{list_.head};
        ++list_.count;
    }
    // The list is full, closed, or not open yet.
    [[gnu::noinline]] static void drop(void* memory) {
        if (recycling && !list_.seen) {
            thread_local const EndOfThread at_exit;
            list_.seen = true;
            list_.room = count_max;
            keep(memory);
            return;
        }
        ::operator delete(memory);
    }

    [[gnu::tls_model("initial-exec")]] static inline constinit thread_local List list_;
};

}  // namespace polder
