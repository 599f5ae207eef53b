// The largest neighbour in a window: the row is a number of the lane plus a counter, times the width (decision 302).
kernel void dilated_rows(global const float* in, global const float* window, global float* out, int width, int height, int radius) {
    const int i = get_global_id(0), x = i % width, y = i / width, size = 2 * radius + 1;
    float most = 0;
    for (int dx = 0; dx < size; ++dx) {
        const int column = x - radius + dx;
        if (column < 0 || column >= width) continue;
        for (int dy = 0; dy < size; ++dy) {
            const int row = y - radius + dy;
            if (row >= 0 && row < height && window[dx * size + dy] != 0) most = fmax(most, in[row * width + column]);
        }
    }
    out[i] = most;
}
