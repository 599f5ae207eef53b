// A scan in local memory: at each step of the tree half as many work-items pass the guard. Their values are doubled distances apart, so lanes do not pay.
kernel void tree_scan(global const int* in, global int* out) {
    local int sums[512];
    const int id = get_local_id(0), size = get_local_size(0);
    global const int* from = in + 2 * size * get_group_id(0);
    sums[2 * id] = from[2 * id];
    sums[2 * id + 1] = from[2 * id + 1];
    int distance = 1;
    for (int d = size; d > 0; d >>= 1, distance <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < d) sums[distance * (2 * id + 2) - 1] += sums[distance * (2 * id + 1) - 1];
    }
    if (id == 0) sums[2 * size - 1] = 0;
    for (int d = 1; d <= size; d <<= 1) {
        distance >>= 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < d) {
            const int left = sums[distance * (2 * id + 1) - 1];
            sums[distance * (2 * id + 1) - 1] = sums[distance * (2 * id + 2) - 1];
            sums[distance * (2 * id + 2) - 1] += left;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[2 * size * get_group_id(0) + 2 * id] = sums[2 * id];
    out[2 * size * get_group_id(0) + 2 * id + 1] = sums[2 * id + 1];
}
