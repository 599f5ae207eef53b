// Random numbers from an id plus a seed of 32 bits: the sum may wrap around, and no address depends on it.
kernel void noise(global float* out, uint seed, int width) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width)
        return;
    uint v0 = seed + (uint)(y * width + x), v1 = 0, sum = 0;
    for (int i = 0; i < 8; ++i) {
        sum += 0x9e3779b9;
        v0 += ((v1 << 4) + 0xa341316c) ^ (v1 + sum) ^ ((v1 >> 5) + 0xc8013ea4);
        v1 += ((v0 << 4) + 0xad90777d) ^ (v0 + sum) ^ ((v0 >> 5) + 0x7e95761e);
    }
    const float f = (float)v0 / 4294967295.0f;
    out[y * width + x] = f < 0.5f ? sqrt(2.0f * f) - 1.0f : 1.0f - sqrt(2.0f * (1.0f - f));
}
