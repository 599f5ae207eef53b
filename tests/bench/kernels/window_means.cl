// Means of the windows around pixels, as far as they are inside of the picture. Dividing the work-item's number into places takes longer than the windows.
kernel void window_means(int n, global const float* picture, int height, int width, int size, int step, int border, int rows, int row, global float* means) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        const int x = i % row * step - border, y = i / row % rows * step - border;
        global const float* const plane = picture + i / row / rows * height * width;
        const int x0 = max(x, 0), x1 = min(x + size, width), y0 = max(y, 0), y1 = min(y + size, height);
        float sum = 0;
        for (int v = y0; v < y1; ++v)
            for (int u = x0; u < x1; ++u)
                sum += plane[v * width + u];
        means[i] = sum / ((x1 - x0) * (y1 - y0));
    }
}
