// A filter whose loops end at the edges of the data.
kernel void turned_window(global const float* in, constant float* taps, global float* out, int count) {
    const int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    const int right = x + count / 2, top = y + count / 2;
    const int from = right >= width ? right + 1 - width : 0, to = x - count / 2 < 0 ? right + 1 : count;
    const int below = top >= height ? top + 1 - height : 0, above = y - count / 2 < 0 ? top + 1 : count;
    float sum = 0;
    for (int i = from; i < to; ++i)
        for (int j = below; j < above; ++j)
            sum += taps[i + j * count] * in[right - i + (top - j) * width];
    out[y * width + x] = sum;
}
