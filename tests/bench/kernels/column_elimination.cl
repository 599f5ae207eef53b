// Elimination that also updates one more column, which few work-items do: dimension 0 walks rows.
kernel void column_elimination(global float* a, global const float* m, global float* b, int size, int t) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= size - 1 - t || y >= size - t)
        return;
    a[size * (x + 1 + t) + (y + t)] -= m[size * (x + 1 + t) + t] * a[size * t + (y + t)];
    if (y == 0)
        b[x + 1 + t] -= m[size * (x + 1 + t) + (y + t)] * b[t];
}
