// The blocks of cl_intel_subgroups in images, which Clang's SPIR-V backend translates to instructions of SPV_INTEL_subgroups.
#ifdef __SPIRV__
#define OVERLOADED __attribute__((overloadable, convergent))
#define DECLARE(T, N, SUFFIX)                                                             \
    T##N OVERLOADED intel_sub_group_block_read##SUFFIX##N(read_only image2d_t, int2);     \
    void OVERLOADED intel_sub_group_block_write##SUFFIX##N(write_only image2d_t, int2, T##N);
DECLARE(uchar, 2, _uc)
DECLARE(uchar, 16, _uc)
DECLARE(ushort, , _us)
DECLARE(ushort, 16, _us)
DECLARE(uint, , _ui)
DECLARE(uint, 8, )
DECLARE(ulong, , _ul)
DECLARE(ulong, 4, _ul)
#endif

#define PUT_2(X) *out++ = X.s0; *out++ = X.s1;
#define PUT_4(X) PUT_2(X.lo) PUT_2(X.hi)
#define PUT_8(X) PUT_4(X.lo) PUT_4(X.hi)
#define PUT_16(X) PUT_8(X.lo) PUT_8(X.hi)

// 49 numbers for each work-item: 1 uint, 8 uints, 1 ushort, 16 ushorts, 2 uchars, 16 uchars, 1 ulong, 4 ulongs.
kernel void reads(read_only image2d_t image, global ulong* out, int x, int y) {
    int2 at = (int2)(x, y);
    out += 49 * get_global_id(0);
    *out++ = intel_sub_group_block_read_ui(image, at);
    uint8 uints = intel_sub_group_block_read8(image, at);
    PUT_8(uints)
    *out++ = intel_sub_group_block_read_us(image, at);
    ushort16 ushorts = intel_sub_group_block_read_us16(image, at);
    PUT_16(ushorts)
    uchar2 pair = intel_sub_group_block_read_uc2(image, at);
    PUT_2(pair)
    uchar16 uchars = intel_sub_group_block_read_uc16(image, at);
    PUT_16(uchars)
    *out++ = intel_sub_group_block_read_ul(image, at);
    ulong4 ulongs = intel_sub_group_block_read_ul4(image, at);
    PUT_4(ulongs)
}

// Eight rows of uints at (x, y); below them one of ushorts and two of uchars.
kernel void writes(write_only image2d_t image, int x, int y) {
    uint i = get_sub_group_local_id() + 1;
    intel_sub_group_block_write8(image, (int2)(x, y), (uint8)(1, 2, 3, 4, 5, 6, 7, 8) * 0x1010101 + i * 0x20000000);
    intel_sub_group_block_write_us(image, (int2)(x, y + 8), (ushort)(i * 0x101));
    intel_sub_group_block_write_uc2(image, (int2)(x, y + 9), (uchar2)(i, 0xf0 + i));
}
