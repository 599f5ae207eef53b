// cl_intel_subgroups: reads and writes of blocks in images. A block begins at a coordinate whose x is in bytes; each work-item of the
// sub-group has the next element, and element i of a vector is from the i-th row. Formats are not converted.
// Reads outside of the image take its nearest element; writes outside do nothing.
#include "image.h"
#include "sub_group.h"

// The first work-item's coordinate, so that the compiler knows that it is the same for all.
HELPER COLLECTIVE int2 block_origin(int2 c) {
    uint first = sub_group_first_active();
    return (int2)(sub_group_from(c.x, first), sub_group_from(c.y, first));
}

// Blocks may begin at any byte.
#define DEFINE_ROWS(T)                                                                                 \
    typedef T T##_at_any_byte __attribute__((aligned(1)));                                             \
    HELPER COLLECTIVE T read_row_##T(Image image, int2 origin, int row) {                              \
        int last = image->width * (int)image->element_bytes - (int)sizeof(T);                          \
        if (last < 0)                                                                                  \
            return 0;                                                                                  \
        int x = origin.x + (int)(_polder_sub_group_lane() * sizeof(T)), y = origin.y + row;            \
        x = smallest(largest(x, 0), last);                                                             \
        y = smallest(largest(y, 0), image->height - 1);                                                \
        return *(const __global T##_at_any_byte*)element_at(image, (int4)(x, y, 0, 0), 2, 1);          \
    }                                                                                                  \
    HELPER COLLECTIVE void write_row_##T(Image image, int2 origin, int row, T value) {                 \
        int last = image->width * (int)image->element_bytes - (int)sizeof(T);                          \
        int x = origin.x + (int)(_polder_sub_group_lane() * sizeof(T)), y = origin.y + row;            \
        if (x >= 0 && x <= last && (uint)y < (uint)image->height)                                      \
            *(__global T##_at_any_byte*)element_at(image, (int4)(x, y, 0, 0), 2, 1) = value;           \
    }
DEFINE_ROWS(uchar)
DEFINE_ROWS(ushort)
DEFINE_ROWS(uint)
DEFINE_ROWS(ulong)

#define READ_2(T, ROW) read_row_##T(at, from, ROW), read_row_##T(at, from, ROW + 1)
#define READ_4(T, ROW) READ_2(T, ROW), READ_2(T, ROW + 2)
#define READ_8(T, ROW) READ_4(T, ROW), READ_4(T, ROW + 4)
#define READ_16(T, ROW) READ_8(T, ROW), READ_8(T, ROW + 8)
#define DEFINE_READ(TYPE, T, SUFFIX, N)                                                                \
    COLLECTIVE T##N intel_sub_group_block_read##SUFFIX##N(TYPE image, int2 c) {                        \
        Image at = polder_image(image);                                                                \
        int2 from = block_origin(c);                                                                   \
        return (T##N)(READ_##N(T, 0));                                                                 \
    }
#define DEFINE_READS(TYPE, T, SUFFIX)                                                                  \
    COLLECTIVE T intel_sub_group_block_read##SUFFIX(TYPE image, int2 c) {                              \
        return read_row_##T(polder_image(image), block_origin(c), 0);                                  \
    }                                                                                                  \
    DEFINE_READ(TYPE, T, SUFFIX, 2) DEFINE_READ(TYPE, T, SUFFIX, 4) DEFINE_READ(TYPE, T, SUFFIX, 8)

#define WRITE_2(T, ROW, X) write_row_##T(at, to, ROW, X.s0), write_row_##T(at, to, ROW + 1, X.s1)
#define WRITE_4(T, ROW, X) WRITE_2(T, ROW, X.lo), WRITE_2(T, ROW + 2, X.hi)
#define WRITE_8(T, ROW, X) WRITE_4(T, ROW, X.lo), WRITE_4(T, ROW + 4, X.hi)
#define WRITE_16(T, ROW, X) WRITE_8(T, ROW, X.lo), WRITE_8(T, ROW + 8, X.hi)
#define DEFINE_WRITE(TYPE, T, SUFFIX, N)                                                               \
    COLLECTIVE void intel_sub_group_block_write##SUFFIX##N(TYPE image, int2 c, T##N x) {               \
        Image at = polder_image(image);                                                                \
        int2 to = block_origin(c);                                                                     \
        WRITE_##N(T, 0, x);                                                                            \
    }
#define DEFINE_WRITES(TYPE, T, SUFFIX)                                                                 \
    COLLECTIVE void intel_sub_group_block_write##SUFFIX(TYPE image, int2 c, T x) {                     \
        write_row_##T(polder_image(image), block_origin(c), 0, x);                                     \
    }                                                                                                  \
    DEFINE_WRITE(TYPE, T, SUFFIX, 2) DEFINE_WRITE(TYPE, T, SUFFIX, 4) DEFINE_WRITE(TYPE, T, SUFFIX, 8)

#define FOR_BLOCKS(MACRO, WIDE, TYPE)                                                                  \
    MACRO(TYPE, uchar, _uc) WIDE(TYPE, uchar, _uc, 16)                                                 \
    MACRO(TYPE, ushort, _us) WIDE(TYPE, ushort, _us, 16)                                               \
    MACRO(TYPE, uint, _ui) MACRO(TYPE, uint, )                                                         \
    MACRO(TYPE, ulong, _ul) WIDE(TYPE, ulong, _ul, 16)
FOR_BLOCKS(DEFINE_READS, DEFINE_READ, read_only image2d_t)
FOR_BLOCKS(DEFINE_READS, DEFINE_READ, read_write image2d_t)
FOR_BLOCKS(DEFINE_WRITES, DEFINE_WRITE, write_only image2d_t)
FOR_BLOCKS(DEFINE_WRITES, DEFINE_WRITE, read_write image2d_t)
