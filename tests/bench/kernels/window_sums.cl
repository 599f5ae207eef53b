// The gradient of a convolution's input: each pixel adds up the columns of the windows that contain it, whose numbers follow from its place.
kernel void window_sums(int n, global const float* columns, int height, int width, int size, int pad, int stride, int rows, int row, global float* image) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        float sum = 0;
        const int x = i % width + pad, y = i / width % height + pad, c = i / (width * height);
        const int x0 = x < size ? 0 : (x - size) / stride + 1, x1 = min(x / stride + 1, row);
        const int y0 = y < size ? 0 : (y - size) / stride + 1, y1 = min(y / stride + 1, rows);
        const int first = (c * size * size + y * size + x) * rows * row;
        const int step_y = (1 - stride * size * rows) * row, step_x = 1 - stride * rows * row;
        for (int v = y0; v < y1; ++v)
            for (int u = x0; u < x1; ++u)
                sum += columns[first + v * step_y + u * step_x];
        image[i] = sum;
    }
}
