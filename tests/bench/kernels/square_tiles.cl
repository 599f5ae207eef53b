// A product in tiles of 16x16, whose rows are one vector: the tile of b is the same for all rows of the group.
kernel void square_tiles(global const float* a, global const float* b, global float* c, int n) {
    local float rows[16][16], columns[16][16];
    const int x = get_local_id(0), y = get_local_id(1);
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        rows[y][x] = a[get_global_id(1) * n + k + x];
        columns[y][x] = b[(k + y) * n + get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < 16; ++i)
            sum += rows[y][i] * columns[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[get_global_id(1) * n + get_global_id(0)] = sum;
}
