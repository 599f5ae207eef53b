// min and max of floats, and clamped indices.
#define SORT(a, b) { const float less = min(a, b); b = max(a, b); a = less; }
kernel void float_median(global const float* in, global float* out, int w, int h) {
    const int x = get_global_id(0), y = get_global_id(1);
    float v[9];
    for (int j = 0; j < 9; ++j)
        v[j] = in[clamp(y + j / 3 - 1, 0, h - 1) * w + clamp(x + j % 3 - 1, 0, w - 1)];
    for (int i = 0; i < 5; ++i)
        for (int j = i + 1; j < 9; ++j)
            SORT(v[i], v[j]);
    out[y * w + x] = v[4];
}
