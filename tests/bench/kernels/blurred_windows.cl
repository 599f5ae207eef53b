// A picture's pixels of four floats around each work-item's, weighted by their distance: lanes save as much in computing weights and places as the kernel's own
// vectors do in adding pixels.
kernel void blurred_windows(global const float4* in, global float4* out, int width, int height, float radius) {
    const int i = get_global_id(0), x = i % width, y = i / width, reach = (int)radius + 1;
    const int top = max(y - reach, 0), bottom = min(y + reach, height), left = max(x - reach, 0), right = min(x + reach, width);
    float weights = 0;
    float4 sum = 0;
    for (int row = top; row < bottom; ++row)
        for (int column = left; column < right; ++column) {
            const float across = x - column, down = y - row, apart = across * across + down * down;
            if (apart < radius * radius) {
                const float weight = 1 / (apart + 0.4f);
                weights += weight;
                sum += weight * clamp(in[row * width + column], 0.0f, 100.0f);
            }
        }
    out[i] = sum / weights;
}
