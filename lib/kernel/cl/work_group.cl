// Work-group collective functions (OpenCL C 6.15.16), with the operations of cl_khr_work_group_uniform_arithmetic.
#include "fold.h"

DEFINE_SCOPE(work_group)

#define DEFINE_WORK_GROUP_BROADCAST(T)                                                                 \
    COLLECTIVE T work_group_broadcast(T x, size_t id) {                                                \
        return work_group_broadcast_from(x, get_local_id(0) == id);                                    \
    }                                                                                                  \
    COLLECTIVE T work_group_broadcast(T x, size_t id_x, size_t id_y) {                                 \
        return work_group_broadcast_from(x, get_local_id(0) == id_x && get_local_id(1) == id_y);       \
    }                                                                                                  \
    COLLECTIVE T work_group_broadcast(T x, size_t id_x, size_t id_y, size_t id_z) {                    \
        return work_group_broadcast_from(                                                              \
            x, get_local_id(0) == id_x && get_local_id(1) == id_y && get_local_id(2) == id_z);         \
    }
FOR_COLLECTIVE_TYPES(DEFINE_WORK_GROUP_BROADCAST)
DEFINE_WORK_GROUP_BROADCAST(half)

#define DEFINE_MULTIPLICATION(T) DEFINE_OPERATION(work_group, mul, T, a * b, (T)1)
FOR_COLLECTIVE_TYPES(DEFINE_MULTIPLICATION)
DEFINE_MULTIPLICATION(half)

#define DEFINE_BITWISE(T)                                                                              \
    DEFINE_OPERATION(work_group, and, T, a & b, ~(T)0)                                                 \
    DEFINE_OPERATION(work_group, or, T, a | b, (T)0)                                                   \
    DEFINE_OPERATION(work_group, xor, T, a ^ b, (T)0)
DEFINE_BITWISE(int)
DEFINE_BITWISE(uint)
DEFINE_BITWISE(long)
DEFINE_BITWISE(ulong)

#define DEFINE_LOGICAL(KIND, NAME)                                                                     \
    COLLECTIVE int work_group_##KIND##_logical_##NAME(int predicate) {                                 \
        return work_group_##KIND##_##NAME((int)(predicate != 0)) != 0;                                 \
    }
#define DEFINE_LOGICALS(KIND) DEFINE_LOGICAL(KIND, and) DEFINE_LOGICAL(KIND, or) DEFINE_LOGICAL(KIND, xor)
DEFINE_LOGICALS(reduce)
DEFINE_LOGICALS(scan_inclusive)
DEFINE_LOGICALS(scan_exclusive)
