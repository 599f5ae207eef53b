// Straight code of some 13,000 instructions (the hash SIMD, unrolled rounds of ciphers), which lanes share.
#define STEP(k) x = rotate(x + (y ^ (k)), (uint)((k) % 31 + 1)); y = (y + x) * ((k) * 2 + 1);
#define STEPS(k) STEP(k) STEP(k + 1) STEP(k + 2) STEP(k + 3) STEP(k + 4) STEP(k + 5) STEP(k + 6) STEP(k + 7) STEP(k + 8) STEP(k + 9)
#define MANY(k) STEPS(k) STEPS(k + 10) STEPS(k + 20) STEPS(k + 30) STEPS(k + 40) STEPS(k + 50) STEPS(k + 60) STEPS(k + 70) STEPS(k + 80) STEPS(k + 90) \
    if (x == y) out[i] = k;

kernel void long_lanes(global const uint* in, global uint* out) {
    const size_t i = get_global_id(0);
    uint x = in[i], y = x * 3;
    MANY(0) MANY(100) MANY(200) MANY(300) MANY(400) MANY(500) MANY(600) MANY(700) MANY(800) MANY(900) MANY(1000) MANY(1100) MANY(1200)
    MANY(1300) MANY(1400) MANY(1500) MANY(1600) MANY(1700) MANY(1800) MANY(1900) MANY(2000) MANY(2100) MANY(2200) MANY(2300) MANY(2400) MANY(2500)
    out[i] = x ^ y;
}
