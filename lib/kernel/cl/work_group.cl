// Work-group collective functions (OpenCL C 6.15.16), and the sub-group functions of cl_khr_subgroups:
// a sub-group is the whole work-group, so that each is its work-group function by another name.
//
// Every work-item puts its value in its slot, one folds them in the order of the linear local id, everybody
// reads. The last barrier keeps the slots from the next collective until all have read. Linear in the size
// of the group, in two of whose three phases the work-items are vectorized.
#include "common.h"

#define SLOTS(T) ((__local T*)_polder_collective_slots())
// Slots are 8 bytes apart from the first of a T, whatever its size: there is room for 8 bytes each.
#define PHASE() barrier(CLK_LOCAL_MEM_FENCE)

// The first work-item goes over the slots from FIRST on, a being all before and b the slot's; each reads slot RESULT.
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
    DEFINE_FOLD(SCOPE##_reduce_##NAME, T, slots[0], 1, , COMBINE, slots[0] = a, 0)                     \
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
    DEFINE_OPERATIONS(SCOPE, float, -INFINITY, INFINITY)                                               \
    DEFINE_OPERATIONS(SCOPE, double, -INFINITY, INFINITY)                                              \
    DEFINE_ALL_AND_ANY(SCOPE)

DEFINE_SCOPE(work_group)
DEFINE_SCOPE(sub_group)

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
    }                                                                                                  \
    COLLECTIVE T sub_group_broadcast(T x, uint id) {                                                   \
        return sub_group_broadcast_from(x, get_local_linear_id() == id);                               \
    }
FOR_COLLECTIVE_TYPES(DEFINE_WORK_GROUP_BROADCAST)

BUILTIN uint get_sub_group_size(void) { return (uint)polder_linear_local_size(); }
BUILTIN uint get_max_sub_group_size(void) {
    return (uint)(get_enqueued_local_size(0) * get_enqueued_local_size(1) * get_enqueued_local_size(2));
}
BUILTIN uint get_num_sub_groups(void) { return 1; }
BUILTIN uint get_enqueued_num_sub_groups(void) { return 1; }
BUILTIN uint get_sub_group_id(void) { return 0; }
BUILTIN uint get_sub_group_local_id(void) { return (uint)get_local_linear_id(); }
