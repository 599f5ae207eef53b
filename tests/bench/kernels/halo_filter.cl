// A filter over a tile with a halo: indices begin below zero in the first groups, and a row of the tile is computed from two ids.
kernel void halo_filter(global float* out, global const float* in, constant float* weights, int w) {
    local float tile[4 * 160];
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int x = (int)get_group_id(0) * 128 - 16 + lx, y = get_global_id(1);
    for (int i = 0; i < 10; ++i)
        tile[ly * 160 + lx + i * 16] = x + i * 16 >= 0 && x + i * 16 < w ? in[y * w + x + i * 16] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 1; i < 9; ++i) {
        float sum = 0;
        for (int j = -8; j <= 8; ++j)
            sum += weights[8 - j] * tile[ly * 160 + lx + i * 16 + j];
        out[y * w + x + i * 16] = sum;
    }
}
