// A warp of 32 work-items for each row of a sparse matrix, as kernels for GPUs are written: the row's number is a quotient of the id.
kernel void warp_rows(global const int* begin, global const int* columns, global const float* values, global const float* x, global float* y, local float* sums, int rows) {
    const int id = get_global_id(0), row = id / 32, lane = id & 31, at = get_local_id(0);
    float sum = 0.0f;
    if (row < rows)
        for (int j = begin[row] + lane; j < begin[row + 1]; j += 32) sum += values[j] * x[columns[j]];
    sums[at] = sum;
    for (int step = 16; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < step) sums[at] += sums[at + step];
    }
    if (row < rows && lane == 0) y[row] = sums[at];
}
