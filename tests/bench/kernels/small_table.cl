// Numbers of four bits, such as a quantized network's weights, that name one of 16 levels in a constant table.
constant float levels[16] = {-1, -0.7f, -0.55f, -0.4f, -0.3f, -0.2f, -0.1f, 0, 0.07f, 0.15f, 0.25f, 0.35f, 0.45f, 0.6f, 0.75f, 1};
kernel void small_table(global const uint* quantized, global const float* factors, global float* sums, int words) {
    size_t row = get_global_id(0);
    size_t rows = get_global_size(0);
    float sum = 0;
    for (int i = 0; i < words; ++i) {
        uint word = quantized[i * rows + row];
        for (int j = 0; j < 8; ++j)
            sum += levels[word >> 4 * j & 15] * factors[8 * i + j];
    }
    sums[row] = sum;
}
