// Differences of neighbouring rows. Sizes are longs, and places are cut to ints.
kernel void rows_by_longs(global float* out, global const float* in, constant long* sizes, int blocks) {
    const int plane = get_group_id(0) / blocks, block = get_group_id(0) - plane * blocks;
    const int x = get_local_id(0) + block * get_local_size(0), y = get_global_id(1);
    if (x >= sizes[0] || y >= sizes[1] || plane >= sizes[2])
        return;
    const int from = plane * sizes[4] + y * sizes[3] + x;
    const int next = from + sizes[3];
    out[plane * sizes[4] + y * sizes[3] + x] = in[next] - in[from];
}
