// The intrinsics of the sub-group functions. On the host, the vectorizer replaces them when the work-items of a sub-group have
// become lanes (lib/compiler/targets/host/workgroup/work_items/sub_group_functions.h). On GPUs, a sub-group is a warp.
#pragma once

#include "common.h"
#include "sub_group_types.h"

#define TOGETHER __attribute__((const, convergent))

uint _polder_sub_group_lane(void) __attribute__((const));
uint _polder_sub_group_number(void) __attribute__((const));
uint _polder_sub_group_width(void) __attribute__((const));

// The names of an operation that all work-items of the sub-group execute, and of one that only the active ones execute.
#ifdef POLDER_WARPS
#include "nvptx/warp.h"
#define OF_ALL(NAME) warp_all_##NAME
#define OF_ACTIVE(NAME) warp_active_##NAME
#define SUB_GROUP_SYNC() _polder_warp_sync(warp_members())
#define DECLARE_COMBINATION(NAME, T)
#else
#define OF_ALL(NAME) _polder_sub_group_##NAME
#define OF_ACTIVE(NAME) _polder_sub_group_##NAME
ulong _polder_sub_group_ballot(uint predicate) TOGETHER;
uchar _polder_sub_group_shuffle_8(uchar x, uint id) TOGETHER;
ushort _polder_sub_group_shuffle_16(ushort x, uint id) TOGETHER;
uint _polder_sub_group_shuffle_32(uint x, uint id) TOGETHER;
ulong _polder_sub_group_shuffle_64(ulong x, uint id) TOGETHER;
void _polder_sub_group_sync(void) __attribute__((convergent));
#define SUB_GROUP_SYNC() _polder_sub_group_sync()
#define DECLARE_COMBINATION(NAME, T)                                                                   \
    T _polder_sub_group_reduce_##NAME##_##T(T x) TOGETHER;                                             \
    T _polder_sub_group_inclusive_##NAME##_##T(T x) TOGETHER;                                          \
    T _polder_sub_group_exclusive_##NAME##_##T(T x) TOGETHER;                                          \
    T _polder_sub_group_clustered_##NAME##_##T(T x, uint size) TOGETHER;
#endif

// x of the work-item `id`.
#define DEFINE_FROM(T, BITS_TYPE, BITS)                                                                \
    HELPER COLLECTIVE T sub_group_from(T x, uint id) {                                                 \
        return as_##T(OF_ACTIVE(shuffle_##BITS)(as_##BITS_TYPE(x), id));                               \
    }                                                                                                  \
    HELPER COLLECTIVE T sub_group_from_all(T x, uint id) {                                             \
        return as_##T(OF_ALL(shuffle_##BITS)(as_##BITS_TYPE(x), id));                                  \
    }
FOR_SUB_GROUP_TYPES(DEFINE_FROM)

// The work-items that take part, as bits.
HELPER COLLECTIVE ulong sub_group_active(void) { return OF_ACTIVE(ballot)(1); }
HELPER COLLECTIVE uint sub_group_first_active(void) { return (uint)ctz(sub_group_active()); }

HELPER uint enqueued_linear_local_size(void) {
    return (uint)(get_enqueued_local_size(0) * get_enqueued_local_size(1) * get_enqueued_local_size(2));
}
HELPER uint sub_group_size_max(void) { return min(_polder_sub_group_width(), enqueued_linear_local_size()); }
