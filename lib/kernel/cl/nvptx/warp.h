// The operations of sub-groups on GPUs, where a sub-group is a warp.
//
// The work-items of a work-group are numbered by their linear local id, and each 32 of them are a warp. `members` are, as bits,
// the work-items that execute an instruction together: all of the sub-group (`warp_all_...`; the last sub-group of a
// work-group may have fewer than 32), or those that are active at this place (`warp_active_...`).
//
// Reductions of 32 bits are one instruction from sm_80 on. All others take five rounds of shuffles: in each one a work-item
// gets the result of twice as many (Hillis and Steele, "Data Parallel Algorithms", 1986). Where some of the work-items are
// not active, each one follows links to active work-items below it, and the distance of a link doubles in each round.
#pragma once

#define POLDER_INSTRUCTION __attribute__((convergent))
#define WARP static inline __attribute__((always_inline, convergent))

// Instructions (lib/compiler/targets/nvptx/warps.h).
uint _polder_warp_active(void) POLDER_INSTRUCTION;
uint _polder_warp_ballot(uint members, uint predicate) POLDER_INSTRUCTION;
uint _polder_warp_shuffle(uint members, uint x, uint lane) POLDER_INSTRUCTION;
void _polder_warp_sync(uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_add(uint x, uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_min(uint x, uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_max(uint x, uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_umin(uint x, uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_umax(uint x, uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_and(uint x, uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_or(uint x, uint members) POLDER_INSTRUCTION;
uint _polder_warp_reduce_xor(uint x, uint members) POLDER_INSTRUCTION;
// Whether the processor has these reductions.
uint _polder_warp_has_reductions(void) __attribute__((const));

#define WARP_SIZE 32
#define WHOLE_WARP 0xffffffffu

WARP uint warp_members(void) {
    uint before = _polder_sub_group_number() * WARP_SIZE;
    return WHOLE_WARP >> (WARP_SIZE - min((uint)WARP_SIZE, (uint)polder_linear_local_size() - before));
}
WARP uint warp_highest(uint members) { return 31 - clz(members); }
// The next one of `members` below this work-item, or this work-item.
WARP uint warp_below(uint members) {
    uint lane = _polder_sub_group_lane(), lower = members & ((1u << lane) - 1);
    return lower ? warp_highest(lower) : lane;
}

WARP ulong warp_all_ballot(uint predicate) { return _polder_warp_ballot(warp_members(), predicate); }
WARP ulong warp_active_ballot(uint predicate) { return _polder_warp_ballot(_polder_warp_active(), predicate); }

WARP uint warp_shuffle_32(uint members, uint x, uint lane) { return _polder_warp_shuffle(members, x, lane); }
WARP uchar warp_shuffle_8(uint members, uchar x, uint lane) {
    return (uchar)_polder_warp_shuffle(members, x, lane);
}
WARP ushort warp_shuffle_16(uint members, ushort x, uint lane) {
    return (ushort)_polder_warp_shuffle(members, x, lane);
}
WARP ulong warp_shuffle_64(uint members, ulong x, uint lane) {
    uint low = _polder_warp_shuffle(members, (uint)x, lane);
    return (ulong)_polder_warp_shuffle(members, (uint)(x >> 32), lane) << 32 | low;
}
#define DEFINE_WARP_SHUFFLE(T, BITS)                                                                   \
    WARP T warp_all_shuffle_##BITS(T x, uint lane) {                                                   \
        return warp_shuffle_##BITS(warp_members(), x, lane);                                           \
    }                                                                                                  \
    WARP T warp_active_shuffle_##BITS(T x, uint lane) {                                                \
        return warp_shuffle_##BITS(_polder_warp_active(), x, lane);                                    \
    }
DEFINE_WARP_SHUFFLE(uchar, 8)
DEFINE_WARP_SHUFFLE(ushort, 16)
DEFINE_WARP_SHUFFLE(uint, 32)
DEFINE_WARP_SHUFFLE(ulong, 64)

#define DEFINE_WARP_FROM(T, BITS_TYPE, BITS)                                                           \
    WARP T warp_from_##T(uint members, T x, uint lane) {                                               \
        return as_##T(warp_shuffle_##BITS(members, as_##BITS_TYPE(x), lane));                          \
    }
FOR_SUB_GROUP_TYPES(DEFINE_WARP_FROM)

// COMBINE is an expression of a and b. REDUCTION returns the result of the processor's own reduction where there is one.
#define BY_INSTRUCTION(NAME)                                                                           \
    if (_polder_warp_has_reductions())                                                                 \
        return _polder_warp_reduce_##NAME((uint)x, members);
#define BY_SHUFFLES(NAME)
#define DEFINE_WARP_COMBINATION(NAME, T, COMBINE, IDENTITY, REDUCTION)                                 \
    /* `members` are the lowest work-items. */                                                         \
    WARP T warp_lowest_inclusive_##NAME##_##T(uint members, T x) {                                     \
        uint lane = _polder_sub_group_lane();                                                          \
        for (uint distance = 1; distance < WARP_SIZE; distance *= 2) {                                 \
            T a = warp_from_##T(members, x, lane - distance), b = x;                                   \
            x = lane < distance ? x : COMBINE;                                                         \
        }                                                                                              \
        return x;                                                                                      \
    }                                                                                                  \
    /* Among the work-items `among`, which are some of `members`. */                                   \
    WARP T warp_linked_inclusive_##NAME##_##T(uint members, uint among, T x) {                         \
        uint link = warp_below(among);                                                                 \
        bool is_linked = link != _polder_sub_group_lane();                                             \
        for (int round = 0; round < 5; ++round) {                                                      \
            T a = warp_from_##T(members, x, link), b = x;                                              \
            uint next = _polder_warp_shuffle(members, is_linked ? link : WARP_SIZE, link);             \
            x = is_linked ? COMBINE : x;                                                               \
            is_linked = is_linked && next != WARP_SIZE;                                                \
            link = is_linked ? next : link;                                                            \
        }                                                                                              \
        return x;                                                                                      \
    }                                                                                                  \
    WARP T warp_inclusive_##NAME##_##T(uint members, T x) {                                            \
        return members & (members + 1) ? warp_linked_inclusive_##NAME##_##T(members, members, x)       \
                                       : warp_lowest_inclusive_##NAME##_##T(members, x);               \
    }                                                                                                  \
    WARP T warp_butterfly_##NAME##_##T(T x, uint size) {                                               \
        for (uint distance = 1; distance < size; distance *= 2) {                                      \
            T a = warp_from_##T(WHOLE_WARP, x, _polder_sub_group_lane() ^ distance), b = x;            \
            x = COMBINE;                                                                               \
        }                                                                                              \
        return x;                                                                                      \
    }                                                                                                  \
    WARP T warp_all_inclusive_##NAME##_##T(T x) {                                                      \
        return warp_lowest_inclusive_##NAME##_##T(warp_members(), x);                                  \
    }                                                                                                  \
    WARP T warp_all_exclusive_##NAME##_##T(T x) {                                                      \
        uint members = warp_members(), lane = _polder_sub_group_lane();                                \
        T below = warp_from_##T(members, warp_lowest_inclusive_##NAME##_##T(members, x), lane - 1);    \
        return lane == 0 ? IDENTITY : below;                                                           \
    }                                                                                                  \
    WARP T warp_all_reduce_##NAME##_##T(T x) {                                                         \
        uint members = warp_members();                                                                 \
        REDUCTION                                                                                      \
        if (members == WHOLE_WARP)                                                                     \
            return warp_butterfly_##NAME##_##T(x, WARP_SIZE);                                          \
        x = warp_lowest_inclusive_##NAME##_##T(members, x);                                            \
        return warp_from_##T(members, x, warp_highest(members));                                       \
    }                                                                                                  \
    WARP T warp_active_inclusive_##NAME##_##T(T x) {                                                   \
        return warp_inclusive_##NAME##_##T(_polder_warp_active(), x);                                  \
    }                                                                                                  \
    WARP T warp_active_exclusive_##NAME##_##T(T x) {                                                   \
        uint members = _polder_warp_active(), link = warp_below(members);                              \
        T below = warp_from_##T(members, warp_inclusive_##NAME##_##T(members, x), link);               \
        return link == _polder_sub_group_lane() ? IDENTITY : below;                                    \
    }                                                                                                  \
    WARP T warp_reduce_##NAME##_##T(uint members, T x) {                                               \
        REDUCTION                                                                                      \
        if (members == WHOLE_WARP)                                                                     \
            return warp_butterfly_##NAME##_##T(x, WARP_SIZE);                                          \
        return warp_from_##T(members, warp_inclusive_##NAME##_##T(members, x), warp_highest(members)); \
    }                                                                                                  \
    WARP T warp_active_reduce_##NAME##_##T(T x) {                                                      \
        return warp_reduce_##NAME##_##T(_polder_warp_active(), x);                                     \
    }                                                                                                  \
    WARP T warp_active_clustered_##NAME##_##T(T x, uint size) {                                        \
        uint members = _polder_warp_active();                                                          \
        if (size >= WARP_SIZE)                                                                         \
            return warp_reduce_##NAME##_##T(members, x);                                               \
        if (members == WHOLE_WARP)                                                                     \
            return warp_butterfly_##NAME##_##T(x, size);                                               \
        uint cluster = members & ((1u << size) - 1) << (_polder_sub_group_lane() & ~(size - 1));       \
        x = warp_linked_inclusive_##NAME##_##T(members, cluster, x);                                   \
        return warp_from_##T(members, x, warp_highest(cluster));                                       \
    }

// REDUCTION, MIN and MAX choose the processor's own reductions.
#define DEFINE_WARP_INTEGER(T, LOWEST, HIGHEST, REDUCTION, MIN, MAX)                                   \
    DEFINE_WARP_COMBINATION(add, T, a + b, 0, REDUCTION(add))                                          \
    DEFINE_WARP_COMBINATION(mul, T, a * b, 1, )                                                        \
    DEFINE_WARP_COMBINATION(min, T, min(a, b), HIGHEST, REDUCTION(MIN))                                \
    DEFINE_WARP_COMBINATION(max, T, max(a, b), LOWEST, REDUCTION(MAX))                                 \
    DEFINE_WARP_COMBINATION(and, T, a & b, ~(T)0, REDUCTION(and))                                      \
    DEFINE_WARP_COMBINATION(or, T, a | b, 0, REDUCTION(or))                                            \
    DEFINE_WARP_COMBINATION(xor, T, a ^ b, 0, REDUCTION(xor))
DEFINE_WARP_INTEGER(char, CHAR_MIN, CHAR_MAX, BY_INSTRUCTION, min, max)
DEFINE_WARP_INTEGER(uchar, 0, UCHAR_MAX, BY_INSTRUCTION, umin, umax)
DEFINE_WARP_INTEGER(short, SHRT_MIN, SHRT_MAX, BY_INSTRUCTION, min, max)
DEFINE_WARP_INTEGER(ushort, 0, USHRT_MAX, BY_INSTRUCTION, umin, umax)
DEFINE_WARP_INTEGER(int, INT_MIN, INT_MAX, BY_INSTRUCTION, min, max)
DEFINE_WARP_INTEGER(uint, 0, UINT_MAX, BY_INSTRUCTION, umin, umax)
DEFINE_WARP_INTEGER(long, LONG_MIN, LONG_MAX, BY_SHUFFLES, min, max)
DEFINE_WARP_INTEGER(ulong, 0, ULONG_MAX, BY_SHUFFLES, min, max)

#define DEFINE_WARP_FLOAT(T)                                                                           \
    DEFINE_WARP_COMBINATION(add, T, a + b, 0, )                                                        \
    DEFINE_WARP_COMBINATION(mul, T, a * b, 1, )                                                        \
    DEFINE_WARP_COMBINATION(min, T, b < a ? b : a, INFINITY, )                                         \
    DEFINE_WARP_COMBINATION(max, T, a < b ? b : a, -INFINITY, )
DEFINE_WARP_FLOAT(half)
DEFINE_WARP_FLOAT(float)
DEFINE_WARP_FLOAT(double)
