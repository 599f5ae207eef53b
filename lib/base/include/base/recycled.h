// Recycled: gives the objects of one type a free list per thread, so that a new object uses the memory of a deleted one.
//
//   class Event final : public Object, public Recycled<Event> { ... };
//
// gives Event its own free list in each thread (base/thread_free_list.h). The C library's allocator would take several times as long.
// Only for `final` types whose objects are often created and deleted. When a thread's list is full, further memory is freed to
// the C library.
//
// Any thread. Under the address and thread sanitizers every object has fresh memory, so that late uses are found.
#pragma once

#include <base/thread_free_list.h>

#include <cstddef>
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
        if constexpr (recycling)
            if (void* const memory = ThreadFreeList<Pieces>::pop())
                return memory;
        return ::operator new(size);
    }
    static void operator delete(void* memory) {
        if constexpr (recycling)
            ThreadFreeList<Pieces>::push(memory);
        else
            ::operator delete(memory);
    }

private:
    friend T;
    Recycled() = default;

    struct Pieces {
        using Link = void*;
        static Link next(Link piece) { return *static_cast<Link*>(piece); }
        static void set_next(Link piece, Link next) { new (piece) Link(next); }
        static void give_back(Link piece) { ::operator delete(piece); }
    };
};

}  // namespace polder
