// Floats are added to bins by a loop of compare and exchange, after work that has lanes (decision 288).
void add(volatile global float* to, float value) {
    uint found = as_uint(*to), expected;
    do {
        expected = found;
        found = atomic_cmpxchg((volatile global uint*)to, expected, as_uint(as_float(expected) + value));
    } while (found != expected);
}

kernel void float_atomics(global const float* values, global const int* bins, global float* sums) {
    const int i = get_global_id(0);
    const float x = values[i];
    add(&sums[bins[i]], exp(-x * x) * sqrt(x + 1));
}
