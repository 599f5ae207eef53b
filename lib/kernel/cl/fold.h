// Work-group collective functions in which one work-item computes the result for all.
//
// Every work-item stores its value in its slot; one work-item combines all values in the order of the linear local id; all work-items read
// the result. After the last barrier the next collective may use the slots. The time is linear in the size of the
// group. In two of the three phases the work-items are vectorized. A reduction, whose order is free, combines 16 values at once.
#pragma once

#include "common.h"

#define SLOTS(T) ((__local T*)_polder_collective_slots())
// There are 8 bytes for each work-item, so that a T of any size fits. Slots of type T are next to each other.
#define PHASE() barrier(CLK_LOCAL_MEM_FENCE)

// The first work-item visits the slots from FIRST on: a is the combination of all slots before, b is the slot. Each work-item reads slot RESULT.
#define DEFINE_FOLD(FUNCTION, T, START, FIRST, BEFORE, COMBINE, AFTER, RESULT)                         \
    COLLECTIVE T FUNCTION(T x) {                                                                       \
        __local T* slots = SLOTS(T);                                                                   \
        size_t me = get_local_linear_id();                                                             \
        slots[me] = x;                                                                                 \
        PHASE();                                                                                       \
        if (me == 0) {                                                                                 \
            T a = START;                                                                               \
            for (size_t i = FIRST, n = polder_linear_local_size(); i < n; ++i) {                       \
                T b = slots[i];                                                                        \
                BEFORE;                                                                                \
                a = COMBINE;                                                                           \
                AFTER;                                                                                 \
            }                                                                                          \
        }                                                                                              \
        PHASE();                                                                                       \
        T result = slots[RESULT];                                                                      \
        PHASE();                                                                                       \
        return result;                                                                                 \
    }

// Combines the halves of a vector, element by element.
#define FOLD_HALVES(T, COMBINE, WHOLE, HALF)                                                           \
    T HALF;                                                                                            \
    {                                                                                                  \
        T a = WHOLE.lo, b = WHOLE.hi;                                                                  \
        HALF = COMBINE;                                                                                \
    }

#define DEFINE_REDUCTION(FUNCTION, T, COMBINE, IDENTITY)                                               \
    COLLECTIVE T FUNCTION(T x) {                                                                       \
        __local T* slots = SLOTS(T);                                                                   \
        slots[get_local_linear_id()] = x;                                                              \
        PHASE();                                                                                       \
        if (get_local_linear_id() == 0) {                                                              \
            size_t n = polder_linear_local_size(), i = 1;                                              \
            T all = slots[0];                                                                          \
            if (n >= 16) {                                                                             \
                typedef T##16 Sixteen __attribute__((aligned(sizeof(T))));                             \
                T##16 parts = *(__local Sixteen*)slots;                                                \
                for (i = 16; i + 16 <= n; i += 16) {                                                   \
                    T##16 a = parts, b = *(__local Sixteen*)(slots + i);                               \
                    parts = COMBINE;                                                                   \
                }                                                                                      \
                FOLD_HALVES(T##8, COMBINE, parts, eight)                                               \
                FOLD_HALVES(T##4, COMBINE, eight, four)                                                \
                FOLD_HALVES(T##2, COMBINE, four, two)                                                  \
                T a = two.lo, b = two.hi;                                                              \
                all = COMBINE;                                                                         \
            }                                                                                          \
            for (; i < n; ++i) {                                                                       \
                T a = all, b = slots[i];                                                               \
                all = COMBINE;                                                                         \
            }                                                                                          \
            slots[0] = all;                                                                            \
        }                                                                                              \
        PHASE();                                                                                       \
        T result = slots[0];                                                                           \
        PHASE();                                                                                       \
        return result;                                                                                 \
    }

// Numbers of 8 bytes: vectors of them would be split into their elements. LLVM makes vectors of the plain loop, whose order does not change the result. It
// starts from the first slot, so that there is no rest of a group of usual size.
#define DEFINE_LONG_REDUCTION(FUNCTION, T, COMBINE, IDENTITY)                                          \
    COLLECTIVE T FUNCTION(T x) {                                                                       \
        __local T* slots = SLOTS(T);                                                                   \
        slots[get_local_linear_id()] = x;                                                              \
        PHASE();                                                                                       \
        if (get_local_linear_id() == 0) {                                                              \
            T all = IDENTITY;                                                                          \
            for (size_t i = 0, n = polder_linear_local_size(); i < n; ++i) {                           \
                T a = all, b = slots[i];                                                               \
                all = COMBINE;                                                                         \
            }                                                                                          \
            slots[0] = all;                                                                            \
        }                                                                                              \
        PHASE();                                                                                       \
        T result = slots[0];                                                                           \
        PHASE();                                                                                       \
        return result;                                                                                 \
    }
#define REDUCTION_OF_half DEFINE_REDUCTION
#define REDUCTION_OF_float DEFINE_REDUCTION
#define REDUCTION_OF_double DEFINE_REDUCTION
#define REDUCTION_OF_int DEFINE_REDUCTION
#define REDUCTION_OF_uint DEFINE_REDUCTION
#define REDUCTION_OF_long DEFINE_LONG_REDUCTION
#define REDUCTION_OF_ulong DEFINE_LONG_REDUCTION

#define DEFINE_BROADCAST(SCOPE, T)                                                                     \
    static inline COLLECTIVE T SCOPE##_broadcast_from(T x, bool is_source) {                           \
        __local T* slots = SLOTS(T);                                                                   \
        if (is_source)                                                                                 \
            slots[0] = x;                                                                              \
        PHASE();                                                                                       \
        T result = slots[0];                                                                           \
        PHASE();                                                                                       \
        return result;                                                                                 \
    }

#define DEFINE_OPERATION(SCOPE, NAME, T, COMBINE, IDENTITY)                                            \
    REDUCTION_OF_##T(SCOPE##_reduce_##NAME, T, COMBINE, IDENTITY)                                      \
    DEFINE_FOLD(SCOPE##_scan_inclusive_##NAME, T, slots[0], 1, , COMBINE, slots[i] = a, me)            \
    DEFINE_FOLD(SCOPE##_scan_exclusive_##NAME, T, IDENTITY, 0, slots[i] = a, COMBINE, , me)

#define DEFINE_OPERATIONS(SCOPE, T, LOWEST, HIGHEST)                                                   \
    DEFINE_OPERATION(SCOPE, add, T, a + b, (T)0)                                                       \
    DEFINE_OPERATION(SCOPE, min, T, b < a ? b : a, HIGHEST)                                            \
    DEFINE_OPERATION(SCOPE, max, T, a < b ? b : a, LOWEST)                                             \
    DEFINE_BROADCAST(SCOPE, T)

#define DEFINE_ALL_AND_ANY(SCOPE)                                                                      \
    COLLECTIVE int SCOPE##_all(int predicate) { return SCOPE##_reduce_min((int)(predicate != 0)); }    \
    COLLECTIVE int SCOPE##_any(int predicate) { return SCOPE##_reduce_max((int)(predicate != 0)); }

#define DEFINE_SCOPE(SCOPE)                                                                            \
    DEFINE_OPERATIONS(SCOPE, int, INT_MIN, INT_MAX)                                                    \
    DEFINE_OPERATIONS(SCOPE, uint, 0, UINT_MAX)                                                        \
    DEFINE_OPERATIONS(SCOPE, long, LONG_MIN, LONG_MAX)                                                 \
    DEFINE_OPERATIONS(SCOPE, ulong, 0, ULONG_MAX)                                                      \
    DEFINE_OPERATIONS(SCOPE, half, -INFINITY, INFINITY)                                                \
    DEFINE_OPERATIONS(SCOPE, float, -INFINITY, INFINITY)                                               \
    DEFINE_OPERATIONS(SCOPE, double, -INFINITY, INFINITY)                                              \
    DEFINE_ALL_AND_ANY(SCOPE)
