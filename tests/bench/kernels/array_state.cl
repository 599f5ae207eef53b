// A generator whose state is a private array, at an index that is a variable and the same for all work-items.
kernel void array_state(global const uint* seeds, global float* out, int count) {
    const int g = get_global_id(0), size = get_global_size(0);
    uint state[17];
    uint x = seeds[g];
    for (int i = 0; i < 17; ++i)
        state[i] = x = 1664525u * x + 1013904223u;
    int oldest = 0;
    for (int k = 0; k < count; ++k) {
        int other = oldest + 5;
        if (other >= 17)
            other -= 17;
        x = state[oldest] + rotate(state[other], 7u);
        state[oldest] = x;
        if (++oldest == 17)
            oldest = 0;
        out[g + k * size] = (x >> 8) * 0x1p-24f;
    }
}
