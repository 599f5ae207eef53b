// The arithmetic peak of several chains: with these options, many products and sums with constants are one.
#define REPEAT s0 = 10 - s0 * 0.9899f; s1 = 10 - s1 * 0.9899f; s2 = 10 - s2 * 0.9899f; s3 = 10 - s3 * 0.9899f; \
    s4 = 10 - s4 * 0.9899f; s5 = 10 - s5 * 0.9899f; s6 = 10 - s6 * 0.9899f; s7 = 10 - s7 * 0.9899f;

kernel void repeated_sums(global float* data, int rounds) {
    const int i = get_global_id(0);
    float s0 = data[i], s1 = 10 - s0, s2 = 9 - s0, s3 = 8 - s0, s4 = 7 - s0, s5 = 6 - s0, s6 = 5 - s0, s7 = 4 - s0;
    for (int k = 0; k < rounds; ++k) {
        REPEAT REPEAT REPEAT REPEAT REPEAT REPEAT REPEAT REPEAT REPEAT REPEAT
    }
    data[i] = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
}
