// A filter along columns, 16 of them and 80 rows for each group in local memory, where each column's elements are side by side.
kernel void column_filter(global float* out, global const float* in, constant float* weights, int width) {
    local float tile[16][81];
    const int x = get_local_id(0), y = get_local_id(1);
    const int at = (get_group_id(1) * 64 + y) * width + get_group_id(0) * 16 + x;
    for (int i = 0; i < 10; ++i) tile[x][y + 8 * i] = in[at + 8 * i * width];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 8; ++i) {
        float sum = 0;
        for (int j = 0; j < 17; ++j) sum += weights[j] * tile[x][y + 8 * i + j];
        out[at + 8 * i * width] = sum;
    }
}
