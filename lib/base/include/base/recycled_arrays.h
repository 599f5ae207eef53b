// RecycledArrays: an allocator for standard containers that are often created and seldom hold many elements. An array of up to `count`
// elements uses the memory of an array that the calling thread freed (base/recycled.h); a larger one is allocated by the C library.
//
//   std::vector<uint64_t, RecycledArrays<uint64_t, 4>>
//
// Any thread; an array may be freed by another thread than the one that allocated it.
#pragma once

#include <base/recycled.h>

#include <cstddef>
#include <new>

namespace polder {

template <class T, size_t count>
class RecycledArrays {
public:
    using value_type = T;
    template <class U>
    struct rebind {
        using other = RecycledArrays<U, count>;
    };

    RecycledArrays() = default;
    template <class U>
    explicit(false) RecycledArrays(const RecycledArrays<U, count>&) {}

    [[nodiscard]] T* allocate(size_t elements) {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        if (elements > count)
            return static_cast<T*>(::operator new(elements * sizeof(T)));
        return static_cast<T*>(Few::operator new(sizeof(Few)));
    }
    void deallocate(T* array, size_t elements) {
        if (elements > count)
            ::operator delete(array);
        else
            Few::operator delete(array);
    }
    friend bool operator==(const RecycledArrays&, const RecycledArrays&) { return true; }

private:
    struct Few final : Recycled<Few> {
        alignas(T) std::byte elements[count * sizeof(T)];
    };
};

}  // namespace polder
