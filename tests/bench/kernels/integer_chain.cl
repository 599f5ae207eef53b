// A generator of random numbers: each depends on the one before.
kernel void integer_chain(global uint* out, uint rounds) {
    const uint i = get_global_id(0);
    uint x = i * 2654435761u + 1, sum = 0;
    for (uint k = 0; k < rounds; ++k) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        sum += x;
    }
    out[i] = sum;
}
