// A generator of random numbers, each of which follows from the one before, beside little work with explicit vectors.
kernel void noisy_pixels(global const uchar4* restrict in, global uchar4* restrict out, int strength) {
    local int table[16 * 64];
    const int id = get_global_id(0), row = 16 * get_local_id(0);
    const float4 pixel = convert_float4(in[id]);
    int state = (int)(pixel.x + 3 * pixel.y + 5 * pixel.z) + 1;
    for (int i = 19; i >= 0; --i) {
        const int high = state / 44488;
        state = 48271 * (state - high * 44488) - 3399 * high;
        if (state < 0) state += 2147483647;
        if (i < 16) table[row + i] = state;
    }
    const int chosen = table[row + table[row] / 134217728];
    out[id] = convert_uchar4_sat(pixel + strength * (chosen / 2147483648.0f - 0.5f));
}
