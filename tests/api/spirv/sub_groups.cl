// cl_intel_subgroups, which Clang's SPIR-V backend translates to the instructions of SPV_INTEL_subgroups. Work-item i writes the
// words from 64 * i on.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#ifdef __SPIRV__
#define OVERLOADED __attribute__((overloadable, convergent))
#define DECLARE_SHUFFLES(T)                             \
    T OVERLOADED intel_sub_group_shuffle(T, uint);      \
    T OVERLOADED intel_sub_group_shuffle_xor(T, uint);  \
    T OVERLOADED intel_sub_group_shuffle_up(T, T, uint); \
    T OVERLOADED intel_sub_group_shuffle_down(T, T, uint);
DECLARE_SHUFFLES(uchar)
DECLARE_SHUFFLES(short)
DECLARE_SHUFFLES(uint)
DECLARE_SHUFFLES(ulong)
DECLARE_SHUFFLES(half)
DECLARE_SHUFFLES(float)
DECLARE_SHUFFLES(double)
DECLARE_SHUFFLES(int4)
DECLARE_SHUFFLES(float16)
#define DECLARE_BLOCKS(T, N, SUFFIX)                                                  \
    T##N OVERLOADED intel_sub_group_block_read_##SUFFIX##N(const global T*);          \
    void OVERLOADED intel_sub_group_block_write_##SUFFIX##N(global T*, T##N);
DECLARE_BLOCKS(uchar, , uc)
DECLARE_BLOCKS(uchar, 16, uc)
DECLARE_BLOCKS(ushort, 4, us)
DECLARE_BLOCKS(uint, , ui)
DECLARE_BLOCKS(uint, 8, ui)
DECLARE_BLOCKS(ulong, 2, ul)
#endif

kernel void shuffles(global const uint* in, global uint* out) {
    size_t i = get_global_id(0);
    out += 64 * i;
    uint x = in[i], y = in[i + 100], far = in[i + 200] % 16;
    *out++ = intel_sub_group_shuffle(x, 5);
    *out++ = intel_sub_group_shuffle(x, far);
    *out++ = intel_sub_group_shuffle_xor(x, 3);
    *out++ = intel_sub_group_shuffle_up(x, y, 2);
    *out++ = intel_sub_group_shuffle_down(x, y, 5);
    *out++ = intel_sub_group_shuffle((uchar)x, far);
    *out++ = (uint)intel_sub_group_shuffle_up((short)x, (short)y, 1);
    *out++ = (uint)intel_sub_group_shuffle((ulong)x << 7, far);
    *out++ = as_ushort(intel_sub_group_shuffle_xor((half)(x % 1000), 1));
    *out++ = as_uint(intel_sub_group_shuffle_down((float)x, (float)y, 7));
    *out++ = (uint)as_ulong(intel_sub_group_shuffle((double)x, far));
    int4 four = intel_sub_group_shuffle_down((int4)(x, y, far, 7), (int4)(y, 1, 2, x), 3);
    *out++ = four.x ^ four.y ^ four.z ^ four.w;
    float16 many = intel_sub_group_shuffle((float16)((float)x), far);
    *out++ = as_uint(many.s3 + many.sf);
}

kernel void blocks(global const uint* in, global uint* out) {
    size_t group = get_group_id(0), i = get_global_id(0);
    uint sum = intel_sub_group_block_read_uc((global const uchar*)in + 16 * group);
    uchar16 bytes = intel_sub_group_block_read_uc16((global const uchar*)in);
    ushort4 words = intel_sub_group_block_read_us4((global const ushort*)in + 64 * group);
    uint8 large = intel_sub_group_block_read_ui8(in + 128 * group);
    ulong2 longs = intel_sub_group_block_read_ul2((global const ulong*)in + 32 * group);
    out[64 * i] = sum + bytes.s0 * 3 + bytes.sf;
    out[64 * i + 1] = words.x ^ words.w << 16;
    out[64 * i + 2] = large.s0 ^ large.s7;
    out[64 * i + 3] = (uint)(longs.x ^ longs.y >> 32);
    global uint* rows = out + 1024 * group + 8;  // of the group's first work-item
    intel_sub_group_block_write_ui(rows, intel_sub_group_block_read_ui(in + 7));
    // Behind what each work-item writes: 16 bytes, 32 bytes, 32 bytes.
    intel_sub_group_block_write_us4((global ushort*)(rows + 64 + 0), (ushort4)(words.y, words.z, 1, 2));
    intel_sub_group_block_write_ul2((global ulong*)(rows + 4 * 64), longs.yx);
    intel_sub_group_block_write_uc16((global uchar*)(rows + 6 * 64), bytes.sfedcba9876543210);
    intel_sub_group_block_write_ui8(rows + 8 * 64, large);
}
