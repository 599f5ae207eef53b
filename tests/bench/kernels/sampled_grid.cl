// A picture of four channels read between its elements, at places of which some are outside: each neighbour is loaded only if it is inside.
kernel void sampled_grid(global const float* in, global const float2* places, global float* out, int channels, int height,
                         int width, int n) {
    const int i = get_global_id(0);
    const float x = (places[i].x + 1) * 0.5f * (width - 1), y = (places[i].y + 1) * 0.5f * (height - 1);
    const int left = (int)floor(x), top = (int)floor(y), right = left + 1, bottom = top + 1;
    const float a = x - left, b = y - top;
    const bool in_left = left >= 0 && left < width, in_right = right >= 0 && right < width;
    const bool in_top = top >= 0 && top < height, in_bottom = bottom >= 0 && bottom < height;
    for (int c = 0; c < channels; c++) {
        global const float* picture = in + c * height * width;
        float sum = 0;
        if (in_top && in_left)
            sum += (1 - a) * (1 - b) * picture[top * width + left];
        if (in_top && in_right)
            sum += a * (1 - b) * picture[top * width + right];
        if (in_bottom && in_left)
            sum += (1 - a) * b * picture[bottom * width + left];
        if (in_bottom && in_right)
            sum += a * b * picture[bottom * width + right];
        out[c * n + i] = sum;
    }
}
