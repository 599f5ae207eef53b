// A layer of a neural network: inputs that one column of work-items loads, a tile whose index is a sum of a row and a column behind
// barriers, and sums that one row of work-items stores.
kernel void layer_sums(global float* sums, global float* products, global const float* weights, global const float* inputs, int columns) {
    local float tile[16 * 16], input[16];
    const int x = get_local_id(0), y = get_local_id(1), row = get_global_id(1), at = row * columns + x;
    if (x == 0)
        input[y] = inputs[row];
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[y * 16 + x] = weights[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[y * 16 + x] *= input[y];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < 16; step *= 2) {
        if (y % (2 * step) == 0)
            tile[y * 16 + x] += tile[(y + step) * 16 + x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    products[at] = tile[y * 16 + x];
    if (x == 0)
        sums[get_group_id(1) * 16 + y] = tile[y];
}
