// Each work-item walks along a row of its own.
kernel void row_sums(global const float* rows, global const float* weights, global float* sums, int width, int count) {
    const int row = get_global_id(0);
    if (row >= count) return;
    float sum = 0;
    for (int i = 0; i < width; ++i) sum += rows[row * width + i] * weights[i];
    sums[row] = sum;
}
