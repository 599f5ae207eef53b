// Atomic functions: those of OpenCL C 2.0 to 3.0 (6.15.12) with all orders and scopes, for the generic address
// space, and those of 1.x (atomic_*, atom_*).
//
// Every scope is treated as the widest one, which costs nothing on a host processor. Forms without a scope have
// the device's scope; forms without an order are sequentially consistent.
#include "common.h"

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

#define SCOPE memory_scope_all_svm_devices
#define OBJECT(T) volatile __generic atomic_##T*

// RESULT NAME(object, value) in its three forms, as EXPRESSION over `object`, `value` and `order`.
#define DEFINE_UPDATE(NAME, T, VALUE_T, EXPRESSION)                                                    \
    BUILTIN T NAME##_explicit(OBJECT(T) object, VALUE_T value, memory_order order) {                   \
        return EXPRESSION;                                                                             \
    }                                                                                                  \
    BUILTIN T NAME##_explicit(OBJECT(T) object, VALUE_T value, memory_order order,                     \
                              memory_scope scope) {                                                    \
        return EXPRESSION;                                                                             \
    }                                                                                                  \
    BUILTIN T NAME(OBJECT(T) object, VALUE_T value) {                                                  \
        const memory_order order = memory_order_seq_cst;                                               \
        return EXPRESSION;                                                                             \
    }

#define FETCH(OPERATION) __opencl_atomic_fetch_##OPERATION(object, value, order, SCOPE)

#define DEFINE_BITWISE(T, VALUE_T)                                                                     \
    DEFINE_UPDATE(atomic_fetch_or, T, VALUE_T, FETCH(or))                                              \
    DEFINE_UPDATE(atomic_fetch_xor, T, VALUE_T, FETCH(xor))                                            \
    DEFINE_UPDATE(atomic_fetch_and, T, VALUE_T, FETCH(and))
#define DEFINE_ADDITION(T, VALUE_T)                                                                    \
    DEFINE_UPDATE(atomic_fetch_add, T, VALUE_T, FETCH(add))                                            \
    DEFINE_UPDATE(atomic_fetch_sub, T, VALUE_T, FETCH(sub))
#define DEFINE_EXTREMA(T, VALUE_T)                                                                     \
    DEFINE_UPDATE(atomic_fetch_min, T, VALUE_T, FETCH(min))                                            \
    DEFINE_UPDATE(atomic_fetch_max, T, VALUE_T, FETCH(max))

#define DEFINE_INTEGER(T) DEFINE_BITWISE(T, T) DEFINE_ADDITION(T, T) DEFINE_EXTREMA(T, T)
DEFINE_INTEGER(int)
DEFINE_INTEGER(uint)
DEFINE_INTEGER(long)
DEFINE_INTEGER(ulong)
DEFINE_ADDITION(float, float)
DEFINE_EXTREMA(float, float)
DEFINE_ADDITION(double, double)
DEFINE_EXTREMA(double, double)
DEFINE_ADDITION(half, half)
DEFINE_EXTREMA(half, half)
// atomic_intptr_t and atomic_uintptr_t take the other signedness.
DEFINE_BITWISE(long, ulong)
DEFINE_BITWISE(ulong, long)
DEFINE_ADDITION(ulong, long)
DEFINE_EXTREMA(ulong, long)
DEFINE_EXTREMA(long, ulong)

#define DEFINE_LOAD(T)                                                                                 \
    BUILTIN T atomic_load_explicit(OBJECT(T) object, memory_order order) {                             \
        return __opencl_atomic_load(object, order, SCOPE);                                             \
    }                                                                                                  \
    BUILTIN T atomic_load_explicit(OBJECT(T) object, memory_order order, memory_scope scope) {         \
        return __opencl_atomic_load(object, order, SCOPE);                                             \
    }                                                                                                  \
    BUILTIN T atomic_load(OBJECT(T) object) {                                                          \
        return __opencl_atomic_load(object, memory_order_seq_cst, SCOPE);                              \
    }

#define DEFINE_STORE(T)                                                                                \
    BUILTIN void atomic_store_explicit(OBJECT(T) object, T value, memory_order order) {                \
        __opencl_atomic_store(object, value, order, SCOPE);                                            \
    }                                                                                                  \
    BUILTIN void atomic_store_explicit(OBJECT(T) object, T value, memory_order order,                  \
                                       memory_scope scope) {                                           \
        __opencl_atomic_store(object, value, order, SCOPE);                                            \
    }                                                                                                  \
    BUILTIN void atomic_store(OBJECT(T) object, T value) {                                             \
        __opencl_atomic_store(object, value, memory_order_seq_cst, SCOPE);                             \
    }                                                                                                  \
    BUILTIN void atomic_init(OBJECT(T) object, T value) {                                              \
        __opencl_atomic_store(object, value, memory_order_relaxed, SCOPE);                             \
    }

// The address space of `expected` is the caller's; weak exchanges are strong.
#define DEFINE_COMPARE(NAME, T, EXPECTED)                                                              \
    BUILTIN bool NAME##_explicit(OBJECT(T) object, EXPECTED T* expected, T desired,                    \
                                 memory_order success, memory_order failure, memory_scope scope) {     \
        T seen = *expected;                                                                            \
        bool is_exchanged =                                                                            \
            __opencl_atomic_compare_exchange_strong(object, &seen, desired, success, failure, SCOPE);  \
        if (!is_exchanged)                                                                             \
            *expected = seen;                                                                          \
        return is_exchanged;                                                                           \
    }                                                                                                  \
    BUILTIN bool NAME##_explicit(OBJECT(T) object, EXPECTED T* expected, T desired,                    \
                                 memory_order success, memory_order failure) {                         \
        return NAME##_explicit(object, expected, desired, success, failure, SCOPE);                    \
    }                                                                                                  \
    BUILTIN bool NAME(OBJECT(T) object, EXPECTED T* expected, T desired) {                             \
        return NAME##_explicit(object, expected, desired, memory_order_seq_cst, memory_order_seq_cst,  \
                               SCOPE);                                                                 \
    }
#define DEFINE_COMPARES(T)                                                                             \
    DEFINE_COMPARE(atomic_compare_exchange_strong, T, __generic)                                       \
    DEFINE_COMPARE(atomic_compare_exchange_weak, T, __generic)                                         \
    DEFINE_COMPARE(atomic_compare_exchange_strong, T, __private)                                       \
    DEFINE_COMPARE(atomic_compare_exchange_weak, T, __private)

#define DEFINE_ACCESSES(T)                                                                             \
    DEFINE_LOAD(T)                                                                                     \
    DEFINE_STORE(T)                                                                                    \
    DEFINE_UPDATE(atomic_exchange, T, T, __opencl_atomic_exchange(object, value, order, SCOPE))        \
    DEFINE_COMPARES(T)
FOR_COLLECTIVE_TYPES(DEFINE_ACCESSES)

DEFINE_LOAD(half)
DEFINE_STORE(half)
DEFINE_UPDATE(atomic_exchange, half, half, __opencl_atomic_exchange(object, value, order, SCOPE))
// Clang's header declares the stored value as half, as above, but its table of built-ins as atomic_half. So both names get a definition.
#define STORED_HALF(NAME, REST) __asm__("_Z" NAME "PU3AS4VU7_AtomicDhS_" REST)
void polder_store_half(OBJECT(half) object, half value) STORED_HALF("12atomic_store", "");
void polder_store_half_in_order(OBJECT(half) object, half value, memory_order order)
    STORED_HALF("21atomic_store_explicit", "12memory_order");
void polder_store_half_in_scope(OBJECT(half) object, half value, memory_order order, memory_scope scope)
    STORED_HALF("21atomic_store_explicit", "12memory_order12memory_scope");
__attribute__((always_inline)) void polder_store_half(OBJECT(half) object, half value) {
    __opencl_atomic_store(object, value, memory_order_seq_cst, SCOPE);
}
__attribute__((always_inline)) void polder_store_half_in_order(OBJECT(half) object, half value, memory_order order) {
    __opencl_atomic_store(object, value, order, SCOPE);
}
__attribute__((always_inline)) void polder_store_half_in_scope(OBJECT(half) object, half value, memory_order order,
                                                               memory_scope scope) {
    __opencl_atomic_store(object, value, order, SCOPE);
}

// atomic_flag is an atomic_int that is 0 or 1.
BUILTIN bool atomic_flag_test_and_set_explicit(OBJECT(int) flag, memory_order order, memory_scope scope) {
    return __opencl_atomic_exchange(flag, 1, order, SCOPE) != 0;
}
BUILTIN bool atomic_flag_test_and_set_explicit(OBJECT(int) flag, memory_order order) {
    return __opencl_atomic_exchange(flag, 1, order, SCOPE) != 0;
}
BUILTIN bool atomic_flag_test_and_set(OBJECT(int) flag) {
    return __opencl_atomic_exchange(flag, 1, memory_order_seq_cst, SCOPE) != 0;
}
BUILTIN void atomic_flag_clear_explicit(OBJECT(int) flag, memory_order order, memory_scope scope) {
    __opencl_atomic_store(flag, 0, order, SCOPE);
}
BUILTIN void atomic_flag_clear_explicit(OBJECT(int) flag, memory_order order) {
    __opencl_atomic_store(flag, 0, order, SCOPE);
}
BUILTIN void atomic_flag_clear(OBJECT(int) flag) {
    __opencl_atomic_store(flag, 0, memory_order_seq_cst, SCOPE);
}

// OpenCL 1.x: relaxed, 32 bits as atomic_* and atom_*, 64 bits as atom_*. libclc's decrement is a loop.
#define OLD_UPDATE(SPACE, PREFIX, NAME, T, OPERATION)                                                  \
    BUILTIN T PREFIX##NAME(volatile SPACE T* p, T value) {                                             \
        return __opencl_atomic_##OPERATION((volatile SPACE atomic_##T*)p, value, memory_order_relaxed, \
                                           SCOPE);                                                     \
    }
#define OLD_STEP(SPACE, PREFIX, NAME, T, OPERATION)                                                    \
    BUILTIN T PREFIX##NAME(volatile SPACE T* p) {                                                      \
        return __opencl_atomic_##OPERATION((volatile SPACE atomic_##T*)p, (T)1, memory_order_relaxed,  \
                                           SCOPE);                                                     \
    }
#define OLD_COMPARE(SPACE, PREFIX, T)                                                                  \
    BUILTIN T PREFIX##cmpxchg(volatile SPACE T* p, T expected, T desired) {                            \
        __opencl_atomic_compare_exchange_strong((volatile SPACE atomic_##T*)p, &expected, desired,     \
                                                memory_order_relaxed, memory_order_relaxed, SCOPE);    \
        return expected;                                                                               \
    }
#define OLD_FAMILY(SPACE, PREFIX, T)                                                                   \
    OLD_UPDATE(SPACE, PREFIX, add, T, fetch_add)                                                       \
    OLD_UPDATE(SPACE, PREFIX, sub, T, fetch_sub)                                                       \
    OLD_UPDATE(SPACE, PREFIX, and, T, fetch_and)                                                       \
    OLD_UPDATE(SPACE, PREFIX, or, T, fetch_or)                                                         \
    OLD_UPDATE(SPACE, PREFIX, xor, T, fetch_xor)                                                       \
    OLD_UPDATE(SPACE, PREFIX, min, T, fetch_min)                                                       \
    OLD_UPDATE(SPACE, PREFIX, max, T, fetch_max)                                                       \
    OLD_UPDATE(SPACE, PREFIX, xchg, T, exchange)                                                       \
    OLD_STEP(SPACE, PREFIX, inc, T, fetch_add)                                                         \
    OLD_STEP(SPACE, PREFIX, dec, T, fetch_sub)                                                         \
    OLD_COMPARE(SPACE, PREFIX, T)
#define OLD_SPACES(PREFIX, T) OLD_FAMILY(__global, PREFIX, T) OLD_FAMILY(__local, PREFIX, T)
OLD_SPACES(atomic_, int)
OLD_SPACES(atomic_, uint)
OLD_SPACES(atom_, int)
OLD_SPACES(atom_, uint)
OLD_SPACES(atom_, long)
OLD_SPACES(atom_, ulong)
OLD_UPDATE(__global, atomic_, xchg, float, exchange)
OLD_UPDATE(__local, atomic_, xchg, float, exchange)
