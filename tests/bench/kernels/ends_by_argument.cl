// An argument chooses what is done at the ends of rows. Only one of the three ways skips elements, by a branch that differs between work-items.
kernel void filter(global const float* in, global float* out, int width, int height, int mode, int border, float strength) {
    int x = get_global_id(0), y = get_global_id(1);
    float s = 0, w = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int sx = x + dx, sy = y + dy;
            if (border == 0) { sx = clamp(sx, 0, width - 1); sy = clamp(sy, 0, height - 1); }
            else if (border == 1) { sx = (sx + width) % width; sy = (sy + height) % height; }
            else if (sx < 0 || sy < 0 || sx >= width || sy >= height) continue;
            float v = in[sy * width + sx], k;
            if (mode == 0) k = 1;
            else if (mode == 1) k = 3 - abs(dx) - abs(dy) * 0.5f;
            else k = dx == 0 && dy == 0 ? 25.0f : -1.0f;
            s += v * k; w += fabs(k);
        }
    out[y * width + x] = mix(in[y * width + x], s / w, strength);
}
