// Sub-group functions (OpenCL C 6.15.19) of cl_khr_subgroups and of the extensions cl_khr_subgroup_*.
#include "sub_group.h"

BUILTIN uint get_sub_group_size(void) {
    uint before = _polder_sub_group_number() * _polder_sub_group_width();
    return min(_polder_sub_group_width(), (uint)polder_linear_local_size() - before);
}
BUILTIN uint get_max_sub_group_size(void) { return sub_group_size_max(); }
BUILTIN uint get_num_sub_groups(void) {
    uint width = _polder_sub_group_width();
    return ((uint)polder_linear_local_size() + width - 1) / width;
}
BUILTIN uint get_enqueued_num_sub_groups(void) {
    uint width = _polder_sub_group_width();
    return (enqueued_linear_local_size() + width - 1) / width;
}
BUILTIN uint get_sub_group_id(void) { return _polder_sub_group_number(); }
BUILTIN uint get_sub_group_local_id(void) { return _polder_sub_group_lane(); }

#ifndef POLDER_WARPS
COLLECTIVE void sub_group_barrier(cl_mem_fence_flags flags) { _polder_sub_group_sync(); }
COLLECTIVE void sub_group_barrier(cl_mem_fence_flags flags, memory_scope scope) {
    if (scope > memory_scope_work_group)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    _polder_sub_group_sync();
}
#endif

// Votes

COLLECTIVE int sub_group_all(int predicate) { return OF_ALL(ballot)(!predicate) == 0; }
COLLECTIVE int sub_group_any(int predicate) { return OF_ALL(ballot)(predicate) != 0; }
COLLECTIVE int sub_group_non_uniform_all(int predicate) { return OF_ACTIVE(ballot)(!predicate) == 0; }
COLLECTIVE int sub_group_non_uniform_any(int predicate) { return OF_ACTIVE(ballot)(predicate) != 0; }
COLLECTIVE int sub_group_elect(void) { return _polder_sub_group_lane() == sub_group_first_active(); }

#define DEFINE_ALL_EQUAL(T, BITS_TYPE, BITS)                                                           \
    COLLECTIVE int sub_group_non_uniform_all_equal(T x) {                                              \
        return OF_ACTIVE(ballot)(x != sub_group_from(x, sub_group_first_active())) == 0;               \
    }
FOR_SUB_GROUP_TYPES(DEFINE_ALL_EQUAL)

// Shuffles

#define FROM_PARAMETERS(T) T x, uint id
#define FROM_ARGUMENTS(OF) OF(x), id
#define DEFINE_SHUFFLES(T, BITS_TYPE, BITS)                                                            \
    COLLECTIVE T sub_group_broadcast(T x, uint id) { return sub_group_from_all(x, id); }               \
    DEFINE_FOR_VECTORS(sub_group_broadcast, T, FROM_PARAMETERS, FROM_ARGUMENTS)                        \
    COLLECTIVE T sub_group_non_uniform_broadcast(T x, uint id) { return sub_group_from(x, id); }       \
    DEFINE_FOR_VECTORS(sub_group_non_uniform_broadcast, T, FROM_PARAMETERS, FROM_ARGUMENTS)            \
    COLLECTIVE T sub_group_broadcast_first(T x) { return sub_group_from(x, sub_group_first_active()); } \
    COLLECTIVE T sub_group_shuffle(T x, uint id) { return sub_group_from(x, id); }                     \
    COLLECTIVE T sub_group_shuffle_xor(T x, uint value) {                                              \
        return sub_group_from(x, _polder_sub_group_lane() ^ value);                                    \
    }                                                                                                  \
    COLLECTIVE T sub_group_shuffle_up(T x, uint delta) {                                               \
        return sub_group_from(x, _polder_sub_group_lane() - delta);                                    \
    }                                                                                                  \
    COLLECTIVE T sub_group_shuffle_down(T x, uint delta) {                                             \
        return sub_group_from(x, _polder_sub_group_lane() + delta);                                    \
    }                                                                                                  \
    COLLECTIVE T sub_group_rotate(T x, int delta) {                                                    \
        return sub_group_from(x, rotated_lane(delta));                                                 \
    }                                                                                                  \
    COLLECTIVE T sub_group_clustered_rotate(T x, int delta, uint size) {                               \
        uint lane = _polder_sub_group_lane();                                                          \
        return sub_group_from(x, (lane & ~(size - 1)) | ((lane + (uint)delta) & (size - 1)));          \
    }

HELPER uint rotated_lane(int delta) {
    uint lane = _polder_sub_group_lane(), size = sub_group_size_max();
    if (size == _polder_sub_group_width())
        return (lane + (uint)delta) & (size - 1);
    int shifted = (int)lane + delta % (int)size;
    return (uint)(shifted < 0 ? shifted + (int)size : shifted) % size;
}
FOR_SUB_GROUP_TYPES(DEFINE_SHUFFLES)

// Ballots

HELPER ulong lower_bits(uint count) { return count >= 64 ? ~0ul : (1ul << count) - 1; }
HELPER uint4 as_bits(ulong bits) { return (uint4)((uint)bits, (uint)(bits >> 32), 0, 0); }
HELPER ulong bits_of(uint4 value) {
    return (((ulong)value.y << 32) | value.x) & lower_bits(sub_group_size_max());
}
COLLECTIVE uint4 sub_group_ballot(int predicate) { return as_bits(OF_ACTIVE(ballot)(predicate)); }
COLLECTIVE int sub_group_inverse_ballot(uint4 value) {
    return (int)(bits_of(value) >> _polder_sub_group_lane()) & 1;
}
COLLECTIVE int sub_group_ballot_bit_extract(uint4 value, uint index) {
    return (int)(bits_of(value) >> (index & 63)) & 1;
}
COLLECTIVE uint sub_group_ballot_bit_count(uint4 value) { return (uint)popcount(bits_of(value)); }
COLLECTIVE uint sub_group_ballot_inclusive_scan(uint4 value) {
    return (uint)popcount(bits_of(value) & lower_bits(_polder_sub_group_lane() + 1));
}
COLLECTIVE uint sub_group_ballot_exclusive_scan(uint4 value) {
    return (uint)popcount(bits_of(value) & lower_bits(_polder_sub_group_lane()));
}
COLLECTIVE uint sub_group_ballot_find_lsb(uint4 value) { return (uint)ctz(bits_of(value)); }
COLLECTIVE uint sub_group_ballot_find_msb(uint4 value) { return 63 - (uint)clz(bits_of(value)); }
BUILTIN uint4 get_sub_group_eq_mask(void) { return as_bits(1ul << _polder_sub_group_lane()); }
BUILTIN uint4 get_sub_group_ge_mask(void) {
    return as_bits(lower_bits(sub_group_size_max()) & ~lower_bits(_polder_sub_group_lane()));
}
BUILTIN uint4 get_sub_group_gt_mask(void) {
    return as_bits(lower_bits(sub_group_size_max()) & ~lower_bits(_polder_sub_group_lane() + 1));
}
BUILTIN uint4 get_sub_group_le_mask(void) { return as_bits(lower_bits(_polder_sub_group_lane() + 1)); }
BUILTIN uint4 get_sub_group_lt_mask(void) { return as_bits(lower_bits(_polder_sub_group_lane())); }

// Arithmetic

#define DEFINE_UNIFORM(NAME, T)                                                                        \
    COLLECTIVE T sub_group_reduce_##NAME(T x) { return OF_ALL(reduce_##NAME##_##T)(x); }               \
    COLLECTIVE T sub_group_scan_inclusive_##NAME(T x) { return OF_ALL(inclusive_##NAME##_##T)(x); }    \
    COLLECTIVE T sub_group_scan_exclusive_##NAME(T x) { return OF_ALL(exclusive_##NAME##_##T)(x); }
#define DEFINE_NON_UNIFORM(NAME, T)                                                                    \
    COLLECTIVE T sub_group_non_uniform_reduce_##NAME(T x) { return OF_ACTIVE(reduce_##NAME##_##T)(x); } \
    COLLECTIVE T sub_group_non_uniform_scan_inclusive_##NAME(T x) {                                    \
        return OF_ACTIVE(inclusive_##NAME##_##T)(x);                                                   \
    }                                                                                                  \
    COLLECTIVE T sub_group_non_uniform_scan_exclusive_##NAME(T x) {                                    \
        return OF_ACTIVE(exclusive_##NAME##_##T)(x);                                                   \
    }                                                                                                  \
    COLLECTIVE T sub_group_clustered_reduce_##NAME(T x, uint size) {                                   \
        return OF_ACTIVE(clustered_##NAME##_##T)(x, size);                                             \
    }
#define DEFINE_NUMBERS(T)                                                                              \
    DECLARE_COMBINATION(add, T) DEFINE_UNIFORM(add, T) DEFINE_NON_UNIFORM(add, T)                      \
    DECLARE_COMBINATION(min, T) DEFINE_UNIFORM(min, T) DEFINE_NON_UNIFORM(min, T)                      \
    DECLARE_COMBINATION(max, T) DEFINE_UNIFORM(max, T) DEFINE_NON_UNIFORM(max, T)                      \
    DECLARE_COMBINATION(mul, T) DEFINE_NON_UNIFORM(mul, T)
#define DEFINE_BITS(T)                                                                                 \
    DECLARE_COMBINATION(and, T) DEFINE_NON_UNIFORM(and, T)                                             \
    DECLARE_COMBINATION(or, T) DEFINE_NON_UNIFORM(or, T)                                               \
    DECLARE_COMBINATION(xor, T) DEFINE_NON_UNIFORM(xor, T)
FOR_SUB_GROUP_NUMBERS(DEFINE_NUMBERS)
FOR_SUB_GROUP_INTEGERS(DEFINE_BITS)

#define DEFINE_LOGICAL(NAME)                                                                           \
    COLLECTIVE int sub_group_non_uniform_reduce_logical_##NAME(int x) {                                \
        return OF_ACTIVE(reduce_##NAME##_int)(x != 0) & 1;                                             \
    }                                                                                                  \
    COLLECTIVE int sub_group_non_uniform_scan_inclusive_logical_##NAME(int x) {                        \
        return OF_ACTIVE(inclusive_##NAME##_int)(x != 0) & 1;                                          \
    }                                                                                                  \
    COLLECTIVE int sub_group_non_uniform_scan_exclusive_logical_##NAME(int x) {                        \
        return OF_ACTIVE(exclusive_##NAME##_int)(x != 0) & 1;                                          \
    }                                                                                                  \
    COLLECTIVE int sub_group_clustered_reduce_logical_##NAME(int x, uint size) {                       \
        return OF_ACTIVE(clustered_##NAME##_int)(x != 0, size) & 1;                                    \
    }
DEFINE_LOGICAL(and)
DEFINE_LOGICAL(or)
DEFINE_LOGICAL(xor)
