// The device's part of printf: records in a ring (include/polder/ptx_abi.h). The compiler calls these functions
// (lib/compiler/targets/nvptx/print.h), which have C's names.
#include "../common.h"

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

// The address of the PtxPrintRing: its bytes used, its capacity, the records.
__global ulong* _polder_print_ring(void) __attribute__((const));

// Room for a record; null when there is none.
__attribute__((always_inline)) __global uchar* polder_print_reserve(ulong bytes) {
    __global ulong* ring = _polder_print_ring();
    if (!ring)
        return 0;
    ulong at = atom_add((volatile __global ulong*)ring, bytes);
    return at + bytes <= ring[1] ? (__global uchar*)(ring + 2) + at : 0;
}

// The bytes that a string needs in a record, with its terminating zero.
ulong polder_print_string_bytes(const __generic char* text) {
    if (!text)
        return 0;
    ulong size = 0;
    while (text[size])
        ++size;
    return (size + 8) & ~7ul;
}

void polder_print_string(__global uchar* to, const __generic char* text) {
    if (!text)
        return;
    ulong i = 0;
    do
        to[i] = text[i];
    while (text[i++]);
}
