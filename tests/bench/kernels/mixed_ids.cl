// Random bits of a work-item's id: sums and rotations, one after the other, and numbers of a key between them. What takes long is to compile it.
#define MIX(a, b, by) a += b, b = ((b << by) + (b >> (32 - by))) ^ a
#define ROUND(a, b, more, less) MIX(a, b, 13), MIX(a, b, 15), MIX(a, b, 26), MIX(a, b, 6), a += more, b += less

kernel void mixed_ids(global float* out, global const uint* key) {
    const uint id = get_group_id(0) * 32 + get_local_id(0);
    const uint k0 = key[0] ^ key[1], k1 = key[1] * 5 + key[2], k2 = k0 ^ k1 ^ 466688986u;
    uint a = id + k0, b = id + 131071u + k1;
    ROUND(a, b, k1, k2 + 1);
    ROUND(a, b, k2, k0 + 2);
    ROUND(a, b, k0, k1 + 3);
    ROUND(a, b, k1, k2 + 4);
    ROUND(a, b, k2, k0 + 5);
    out[(int)id] = as_float((a >> 9) | 0x3f800000u) - 1;
    out[131072 + (int)id] = as_float((b >> 9) | 0x3f800000u) - 1;
}
