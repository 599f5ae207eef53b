// 64 loops of 16 iterations, which are unrolled: one block of a thousand products and sums, one after the other, whose places are mixed of ids.
#define STEP(k)                  \
    for (uint j = 0; j < 16; ++j) \
        sum = sum * (2 * (k) + 3) + (in[(id + j + (k)) & 1023] ^ own);
#define STEPS4(k) STEP(k) STEP(k + 1) STEP(k + 2) STEP(k + 3)
#define STEPS16(k) STEPS4(k) STEPS4(k + 4) STEPS4(k + 8) STEPS4(k + 12)

kernel void mixed_sums(global const uint* in, global uint* out) {
    const uint id = get_global_id(0);
    const uint own = in[id];
    uint sum = id;
    STEPS16(0)
    STEPS16(16)
    STEPS16(32)
    STEPS16(48)
    out[id] = sum;
}
