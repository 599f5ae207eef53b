// A filter along columns of float4: the group loads a column into local memory, and a guard is around the sums (decision 339).
kernel void filtered_columns(global const float4* in, constant float* filter, global float4* out, int columns, int rows, int width,
                             local float4* column) {
    const int x = get_global_id(0), y = get_global_id(1), l = get_local_id(1), size = get_local_size(1);
    const int begin = get_group_id(1) * size - width / 2;
    for (int i = l; i < size + width; i += size) column[i] = in[clamp(begin + i, 0, rows - 1) * columns + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (y < rows) {
        float4 sum = 0;
        int i = 0;
        for (; i + 7 < width; i += 8)
            for (int j = 0; j < 8; ++j) sum += filter[i + j] * column[i + j + l];
        for (; i < width; ++i) sum += filter[i] * column[i + l];
        out[y * columns + x] = sum;
    }
}
