// Dimension 0 walks rows: neighbouring work-items access memory a row apart.
kernel void row_walking(global float* a, global const float* m, int size, int t) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= size - 1 - t || y >= size - t)
        return;
    a[size * (x + 1 + t) + (y + t)] -= m[size * (x + 1 + t) + t] * a[size * t + (y + t)];
}
