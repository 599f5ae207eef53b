// A product with the transposed matrix: 16 sums for each work-item, and private arrays that hold the numbers of the next round.
kernel void prefetched_tiles(global float* c, global const float* a, global const float* b, int n) {
    local float tile[4][16];
    const int x = get_local_id(0), y = get_local_id(1), item = x + 16 * y;
    const int column = get_group_id(0) * 64 + item, row = get_group_id(1) * 16;
    a += column;
    b += row + x + y * n;
    float sum[16] = {0}, next[4], now[4];
    for (int k = 0; k < 4; ++k)
        next[k] = a[k * n];
    float next_b = b[0];
    int done = 0;
    do {
        for (int k = 0; k < 4; ++k)
            now[k] = next[k];
        tile[y][x] = next_b;
        barrier(CLK_LOCAL_MEM_FENCE);
        a += 4 * n;
        b += 4 * n;
        for (int k = 0; k < 4; ++k)
            next[k] = a[k * n];
        next_b = b[0];
        for (int k = 0; k < 4; ++k)
            for (int i = 0; i < 16; ++i)
                sum[i] += now[k] * tile[k][i];
        done += 4;
        barrier(CLK_LOCAL_MEM_FENCE);
    } while (done < n);
    c += column + row * n;
    for (int i = 0; i < 16; ++i, c += n)
        c[0] = sum[i];
}
