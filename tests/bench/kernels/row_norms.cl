// Rows are normalized, one by each work-item.
kernel void row_norms(global const float* in, global const float* factors, global float* out, int width) {
    const int row = get_global_id(0) * width;
    float mean = 0, variance = 0;
    for (int i = 0; i < width; ++i) mean += in[row + i];
    mean /= width;
    for (int i = 0; i < width; ++i) variance += (in[row + i] - mean) * (in[row + i] - mean);
    const float scale = rsqrt(variance / width + 1e-5f);
    for (int i = 0; i < width; ++i) out[row + i] = (in[row + i] - mean) * scale * factors[i];
}
