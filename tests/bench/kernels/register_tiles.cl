// A matrix product with 16 sums for each work-item: rows of a are read by neighbours, a tile of b passes through local memory, and both
// pointers advance around the barriers.
kernel void register_tiles(global float* c, global const float* a, global const float* b, int n) {
    local float tile[16][17];
    const int x = get_local_id(0), y = get_local_id(1), item = x + 16 * y;
    const int column = get_group_id(0) * 64 + item, row = get_group_id(1) * 16;
    a += column;
    b += x + (row + y) * n;
    float sum[16] = {0};
    for (int done = 0; done < n; done += 16) {
        for (int k = 0; k < 16; k += 4)
            tile[x][y + k] = b[k * n];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; ++k) {
            const float factor = a[0];
            for (int i = 0; i < 16; ++i)
                sum[i] += factor * tile[k][i];
            a += n;
        }
        b += 16;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c += column + row * n;
    for (int i = 0; i < 16; ++i, c += n)
        c[0] = sum[i];
}
