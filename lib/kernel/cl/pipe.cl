// Pipes (OpenCL C 6.15.15): what Clang calls for read_pipe, write_pipe, reservations and queries. The memory's layout and the
// algorithm are those of include/polder/pipe_abi.h.
//
// A reservation is the number of its first packet, 40 bits, and their count in one word. Nothing here waits: commits of reservations may come in
// any order, and a packet is readable when it is committed and all before it are reserved by readers. So a work-item never depends
// on one that its thread executes later. These functions are never inlined: lanes call them one after the other.
#include "fold.h"
#include "sub_group.h"

struct PipeHeader {
    ulong packet_bytes;
    ulong packets_max;
    ulong next[2];  // to write, to read
};
typedef __generic struct PipeHeader* Pipe;

#define APART __attribute__((noinline, cold))
#define TO_WRITE 0
#define TO_READ 1
#define COUNT_BITS 24
#define NO_RESERVATION (~0ul)

static inline volatile __generic atomic_ulong* turn_of(Pipe ring, ulong number) {
    return (volatile __generic atomic_ulong*)(ring + 1) + number % ring->packets_max;
}

static inline __generic uchar* packet_of(Pipe ring, ulong number) {
    return (__generic uchar*)(ring + 1) + ring->packets_max * sizeof(ulong) +
           number % ring->packets_max * ring->packet_bytes;
}

static inline bool is_turn(Pipe ring, ulong number, int how) {
    return __opencl_atomic_load(turn_of(ring, number), memory_order_acquire, memory_scope_all_svm_devices) ==
           number * 2 + (ulong)how;
}

APART ulong polder_pipe_reserve(Pipe ring, int how, uint count) {
    if (count == 0 || count > ring->packets_max || count >> COUNT_BITS != 0)
        return NO_RESERVATION;
    volatile __generic atomic_ulong* next = (volatile __generic atomic_ulong*)&ring->next[how];
    ulong first = __opencl_atomic_load(next, memory_order_relaxed, memory_scope_all_svm_devices);
    for (;;) {
        uint ready = 0;
        while (ready < count && is_turn(ring, first + ready, how))
            ++ready;
        ulong seen = first;
        if (ready == count &&
            __opencl_atomic_compare_exchange_strong(next, &seen, first + count, memory_order_relaxed,
                                                    memory_order_relaxed, memory_scope_all_svm_devices))
            return first << COUNT_BITS | count;
        if (ready != count)
            seen = __opencl_atomic_load(next, memory_order_relaxed, memory_scope_all_svm_devices);
        // The number has not changed meanwhile: there is no room, or there are not enough packets.
        if (seen == first)
            return NO_RESERVATION;
        first = seen;
    }
}

APART void polder_pipe_commit(Pipe ring, int how, ulong reservation) {
    if (reservation == NO_RESERVATION)
        return;
    ulong first = reservation >> COUNT_BITS;
    for (ulong number = first; number < first + (reservation & ((1ul << COUNT_BITS) - 1)); ++number)
        __opencl_atomic_store(turn_of(ring, number),
                              how == TO_WRITE ? number * 2 + 1 : (number + ring->packets_max) * 2,
                              memory_order_release, memory_scope_all_svm_devices);
}

APART int polder_pipe_access(Pipe ring, int how, ulong reservation, uint index, __generic uchar* packet) {
    if (reservation == NO_RESERVATION || index >= (reservation & ((1ul << COUNT_BITS) - 1)))
        return -1;
    __generic uchar* place = packet_of(ring, (reservation >> COUNT_BITS) + index);
    for (ulong i = 0; i < ring->packet_bytes; ++i)
        if (how == TO_WRITE)
            place[i] = packet[i];
        else
            packet[i] = place[i];
    return 0;
}

APART int polder_pipe_access_one(Pipe ring, int how, __generic uchar* packet) {
    ulong reservation = polder_pipe_reserve(ring, how, 1);
    int result = polder_pipe_access(ring, how, reservation, 0, packet);
    polder_pipe_commit(ring, how, reservation);
    return result;
}

// Packets that are committed and not reserved by readers.
APART uint polder_pipe_count(Pipe ring) {
    ulong first = __opencl_atomic_load((volatile __generic atomic_ulong*)&ring->next[TO_READ], memory_order_relaxed,
                                       memory_scope_all_svm_devices);
    uint count = 0;
    while (count < ring->packets_max && is_turn(ring, first + count, TO_READ))
        ++count;
    return count;
}

// The functions that Clang calls. Its pipes and reservations are opaque types; in the library these are pointers to private memory.
typedef __private void* Opaque;
static inline Pipe pipe_of(Opaque ring) { return (Pipe)(size_t)ring; }
static inline Opaque opaque_of(ulong reservation) { return (Opaque)(size_t)reservation; }
static inline ulong reservation_of(Opaque reservation) { return (ulong)(size_t)reservation; }
#define PLAIN __attribute__((always_inline))
#define TOGETHER_ALL __attribute__((always_inline, convergent))

#define DEFINE_SIDE(NAME, HOW, SUFFIX)                                                                 \
    PLAIN int __##NAME##_pipe_2(Opaque ring, __generic void* packet, uint bytes, uint align) {         \
        return polder_pipe_access_one(pipe_of(ring), HOW, (__generic uchar*)packet);            \
    }                                                                                                  \
    PLAIN int __##NAME##_pipe_4(Opaque ring, Opaque reservation, uint index, __generic void* packet,   \
                                uint bytes, uint align) {                                              \
        return polder_pipe_access(pipe_of(ring), HOW, reservation_of(reservation), index,       \
                                         (__generic uchar*)packet);                                    \
    }                                                                                                  \
    PLAIN Opaque __reserve_##NAME##_pipe(Opaque ring, uint count, uint bytes, uint align) {            \
        return opaque_of(polder_pipe_reserve(pipe_of(ring), HOW, count));                       \
    }                                                                                                  \
    PLAIN void __commit_##NAME##_pipe(Opaque ring, Opaque reservation, uint bytes, uint align) {       \
        polder_pipe_commit(pipe_of(ring), HOW, reservation_of(reservation));                    \
    }                                                                                                  \
    PLAIN uint __get_pipe_num_packets_##SUFFIX(Opaque ring, uint bytes, uint align) {                  \
        return polder_pipe_count(pipe_of(ring));                                                \
    }                                                                                                  \
    PLAIN uint __get_pipe_max_packets_##SUFFIX(Opaque ring, uint bytes, uint align) {                  \
        return (uint)pipe_of(ring)->packets_max;                                                       \
    }                                                                                                  \
    TOGETHER_ALL Opaque __work_group_reserve_##NAME##_pipe(Opaque ring, uint count, uint bytes,        \
                                                           uint align) {                               \
        __local ulong* slots = SLOTS(ulong);                                                           \
        if (get_local_linear_id() == 0)                                                                \
            slots[0] = polder_pipe_reserve(pipe_of(ring), HOW, count);                          \
        PHASE();                                                                                       \
        ulong reservation = slots[0];                                                                  \
        PHASE();                                                                                       \
        return opaque_of(reservation);                                                                 \
    }                                                                                                  \
    TOGETHER_ALL void __work_group_commit_##NAME##_pipe(Opaque ring, Opaque reservation, uint bytes,   \
                                                        uint align) {                                  \
        PHASE();                                                                                       \
        if (get_local_linear_id() == 0)                                                                \
            polder_pipe_commit(pipe_of(ring), HOW, reservation_of(reservation));                \
        PHASE();                                                                                       \
    }                                                                                                  \
    /* The whole sub-group executes these, so they use no mask of active work-items: on a GPU, the      \
       work-item that reserves may still be diverged from the others when they get its result. */       \
    TOGETHER_ALL Opaque __sub_group_reserve_##NAME##_pipe(Opaque ring, uint count, uint bytes,         \
                                                          uint align) {                                \
        ulong reservation = NO_RESERVATION;                                                            \
        if (_polder_sub_group_lane() == 0)                                                             \
            reservation = polder_pipe_reserve(pipe_of(ring), HOW, count);                       \
        return opaque_of(sub_group_from_all(reservation, 0));                                          \
    }                                                                                                  \
    TOGETHER_ALL void __sub_group_commit_##NAME##_pipe(Opaque ring, Opaque reservation, uint bytes,    \
                                                       uint align) {                                   \
        SUB_GROUP_SYNC();                                                                              \
        if (_polder_sub_group_lane() == 0)                                                             \
            polder_pipe_commit(pipe_of(ring), HOW, reservation_of(reservation));                \
    }
DEFINE_SIDE(write, TO_WRITE, wo)
DEFINE_SIDE(read, TO_READ, ro)

bool polder_is_reservation(Opaque reservation) __asm__("_Z19is_valid_reserve_id13ocl_reserveid");
PLAIN bool polder_is_reservation(Opaque reservation) { return reservation_of(reservation) != NO_RESERVATION; }

// CLK_NULL_RESERVE_ID
PLAIN __attribute__((const)) Opaque __polder_null_reservation(void) { return opaque_of(NO_RESERVATION); }
