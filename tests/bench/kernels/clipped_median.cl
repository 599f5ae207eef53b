// The median of the pixels around each pixel, as far as they are inside of the picture. They are sorted as they are read, so each finds its place among those
// before it. Away from the edges all work-items have as many.
kernel void clipped_median(global const float* picture, global float* medians, int width, int height, int reach) {
    const int x = get_global_id(0), y = get_global_id(1);
    float sorted[25];
    int count = 0;
    for (int v = max(y - reach, 0); v <= min(y + reach, height - 1); ++v)
        for (int u = max(x - reach, 0); u <= min(x + reach, width - 1); ++u) {
            const float value = picture[v * width + u];
            int place = 0;
            while (place < count && sorted[place] <= value)
                ++place;
            for (int i = count; i > place; --i)
                sorted[i] = sorted[i - 1];
            sorted[place] = value;
            ++count;
        }
    medians[y * width + x] = sorted[count / 2];
}
