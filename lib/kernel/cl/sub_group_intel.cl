// cl_intel_subgroups with its _char, _short and _long: shuffles over two values, and reads and writes of blocks. All
// work-items of a sub-group pass the same address of a block. The first one's is used, so that the compiler knows that it is the same.
#include "sub_group.h"

#define FROM_PARAMETERS(T) T x, uint id
#define FROM_ARGUMENTS(OF) OF(x), id
#define BOTH_PARAMETERS(T) T a, T b, uint delta
#define BOTH_ARGUMENTS(OF) OF(a), OF(b), delta
#define DEFINE_SHUFFLES(T, BITS_TYPE, BITS)                                                            \
    COLLECTIVE T intel_sub_group_shuffle(T x, uint id) { return sub_group_from(x, id); }               \
    DEFINE_FOR_VECTORS(intel_sub_group_shuffle, T, FROM_PARAMETERS, FROM_ARGUMENTS)                    \
    COLLECTIVE T intel_sub_group_shuffle_xor(T x, uint id) {                                           \
        return sub_group_from(x, _polder_sub_group_lane() ^ id);                                       \
    }                                                                                                  \
    DEFINE_FOR_VECTORS(intel_sub_group_shuffle_xor, T, FROM_PARAMETERS, FROM_ARGUMENTS)                \
    COLLECTIVE T intel_sub_group_shuffle_down(T a, T b, uint delta) {                                  \
        uint size = sub_group_size_max(), id = _polder_sub_group_lane() + delta;                       \
        T next = sub_group_from(b, id - size), current = sub_group_from(a, id);                        \
        return id < size ? current : next;                                                             \
    }                                                                                                  \
    DEFINE_FOR_VECTORS(intel_sub_group_shuffle_down, T, BOTH_PARAMETERS, BOTH_ARGUMENTS)               \
    COLLECTIVE T intel_sub_group_shuffle_up(T a, T b, uint delta) {                                    \
        uint size = sub_group_size_max(), id = _polder_sub_group_lane() - delta;                       \
        T previous = sub_group_from(a, id + size), current = sub_group_from(b, id);                    \
        return id < size ? current : previous;                                                         \
    }                                                                                                  \
    DEFINE_FOR_VECTORS(intel_sub_group_shuffle_up, T, BOTH_PARAMETERS, BOTH_ARGUMENTS)                 \
    COLLECTIVE T intel_sub_group_broadcast(T x, uint id) { return sub_group_from(x, id); }             \
    DEFINE_FOR_VECTORS(intel_sub_group_broadcast, T, FROM_PARAMETERS, FROM_ARGUMENTS)
FOR_SUB_GROUP_TYPES(DEFINE_SHUFFLES)

#define DEFINE_REDUCTION(NAME, T)                                                                      \
    DECLARE_COMBINATION(NAME, T)                                                                       \
    COLLECTIVE T intel_sub_group_reduce_##NAME(T x) { return OF_ALL(reduce_##NAME##_##T)(x); }         \
    COLLECTIVE T intel_sub_group_scan_inclusive_##NAME(T x) { return OF_ALL(inclusive_##NAME##_##T)(x); } \
    COLLECTIVE T intel_sub_group_scan_exclusive_##NAME(T x) { return OF_ALL(exclusive_##NAME##_##T)(x); }
#define DEFINE_REDUCTIONS(T) DEFINE_REDUCTION(add, T) DEFINE_REDUCTION(min, T) DEFINE_REDUCTION(max, T)
DEFINE_REDUCTIONS(char)
DEFINE_REDUCTIONS(uchar)
DEFINE_REDUCTIONS(short)
DEFINE_REDUCTIONS(ushort)

// Element i of a block of vectors is a row of its own: one element for each work-item.
#define DEFINE_BLOCK(SPACE, T, SUFFIX, READ, WRITE)                                                    \
    HELPER COLLECTIVE T READ##_row(const SPACE T* p, uint row) {                                       \
        return p[row * sub_group_size_max() + _polder_sub_group_lane()];                               \
    }                                                                                                  \
    HELPER COLLECTIVE void WRITE##_row(SPACE T* p, uint row, T x) {                                    \
        p[row * sub_group_size_max() + _polder_sub_group_lane()] = x;                                  \
    }                                                                                                  \
    HELPER COLLECTIVE SPACE T* READ##_place(const SPACE T* p) {                                        \
        return (SPACE T*)sub_group_from((ulong)p, sub_group_first_active());                           \
    }                                                                                                  \
    COLLECTIVE T READ##SUFFIX(const SPACE T* p) { return READ##_row(READ##_place(p), 0); }             \
    COLLECTIVE T##2 READ##SUFFIX##2(const SPACE T* p) {                                                \
        p = READ##_place(p);                                                                           \
        return (T##2)(READ##_row(p, 0), READ##_row(p, 1));                                             \
    }                                                                                                  \
    COLLECTIVE T##4 READ##SUFFIX##4(const SPACE T* p) {                                                \
        p = READ##_place(p);                                                                           \
        return (T##4)(READ##_row(p, 0), READ##_row(p, 1), READ##_row(p, 2), READ##_row(p, 3));         \
    }                                                                                                  \
    COLLECTIVE T##8 READ##SUFFIX##8(const SPACE T* p) {                                                \
        p = READ##_place(p);                                                                           \
        return (T##8)(READ##_row(p, 0), READ##_row(p, 1), READ##_row(p, 2), READ##_row(p, 3),          \
                      READ##_row(p, 4), READ##_row(p, 5), READ##_row(p, 6), READ##_row(p, 7));         \
    }                                                                                                  \
    COLLECTIVE void WRITE##SUFFIX(SPACE T* p, T x) { WRITE##_row(READ##_place(p), 0, x); }             \
    COLLECTIVE void WRITE##SUFFIX##2(SPACE T* p, T##2 x) {                                             \
        p = READ##_place(p);                                                                           \
        WRITE##_row(p, 0, x.s0);                                                                       \
        WRITE##_row(p, 1, x.s1);                                                                       \
    }                                                                                                  \
    COLLECTIVE void WRITE##SUFFIX##4(SPACE T* p, T##4 x) {                                             \
        WRITE##SUFFIX##2(p, x.lo);                                                                     \
        WRITE##SUFFIX##2(p + 2 * sub_group_size_max(), x.hi);                                          \
    }                                                                                                  \
    COLLECTIVE void WRITE##SUFFIX##8(SPACE T* p, T##8 x) {                                             \
        WRITE##SUFFIX##4(p, x.lo);                                                                     \
        WRITE##SUFFIX##4(p + 4 * sub_group_size_max(), x.hi);                                          \
    }

#define DEFINE_WIDE_BLOCK(SPACE, T, SUFFIX)                                                            \
    COLLECTIVE T##16 intel_sub_group_block_read##SUFFIX##16(const SPACE T* p) {                        \
        return (T##16)(intel_sub_group_block_read##SUFFIX##8(p),                                       \
                       intel_sub_group_block_read##SUFFIX##8(p + 8 * sub_group_size_max()));           \
    }                                                                                                  \
    COLLECTIVE void intel_sub_group_block_write##SUFFIX##16(SPACE T* p, T##16 x) {                     \
        intel_sub_group_block_write##SUFFIX##8(p, x.lo);                                               \
        intel_sub_group_block_write##SUFFIX##8(p + 8 * sub_group_size_max(), x.hi);                    \
    }

#define DEFINE_NAMED_BLOCK(SPACE, T, SUFFIX)                                                           \
    DEFINE_BLOCK(SPACE, T, SUFFIX, intel_sub_group_block_read, intel_sub_group_block_write)
DEFINE_NAMED_BLOCK(__global, uchar, _uc)
DEFINE_NAMED_BLOCK(__global, ushort, _us)
DEFINE_NAMED_BLOCK(__global, uint, _ui)
DEFINE_NAMED_BLOCK(__global, ulong, _ul)
DEFINE_WIDE_BLOCK(__global, uchar, _uc)
DEFINE_WIDE_BLOCK(__global, ushort, _us)

// The first extension's names have no suffix.
COLLECTIVE uint intel_sub_group_block_read(const __global uint* p) { return intel_sub_group_block_read_ui(p); }
COLLECTIVE uint2 intel_sub_group_block_read2(const __global uint* p) { return intel_sub_group_block_read_ui2(p); }
COLLECTIVE uint4 intel_sub_group_block_read4(const __global uint* p) { return intel_sub_group_block_read_ui4(p); }
COLLECTIVE uint8 intel_sub_group_block_read8(const __global uint* p) { return intel_sub_group_block_read_ui8(p); }
COLLECTIVE void intel_sub_group_block_write(__global uint* p, uint x) { intel_sub_group_block_write_ui(p, x); }
COLLECTIVE void intel_sub_group_block_write2(__global uint* p, uint2 x) { intel_sub_group_block_write_ui2(p, x); }
COLLECTIVE void intel_sub_group_block_write4(__global uint* p, uint4 x) { intel_sub_group_block_write_ui4(p, x); }
COLLECTIVE void intel_sub_group_block_write8(__global uint* p, uint8 x) { intel_sub_group_block_write_ui8(p, x); }
