// Weighted means of the pixels around each pixel, as far as they are inside of the picture.
kernel void clipped_windows(global const float* picture, global float* means, int width, int height, int reach,
                            float sharpness) {
    const int x = get_global_id(0), y = get_global_id(1);
    const float middle = picture[y * width + x];
    const int left = max(x - reach, 0), right = min(x + reach + 1, width);
    const int top = max(y - reach, 0), bottom = min(y + reach + 1, height);
    float sum = 0, weights = 0;
    for (int v = top; v < bottom; ++v)
        for (int u = left; u < right; ++u) {
            const float value = picture[v * width + u], difference = value - middle;
            const float weight = 1 / (1 + sharpness * difference * difference);
            sum += weight * value;
            weights += weight;
        }
    means[y * width + x] = sum / weights;
}
