// Elements of arrays whose strides are arguments, one for each dimension, as libraries of arrays pass them: a weighted sum of neighbours.
kernel void smoothed(global float* out, int to_x, int to_y, global const float* in, int from_x, int from_y, int width,
                     int height) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const int left = max(x - 1, 0), right = min(x + 1, width - 1);
    out[x * to_x + y * to_y] = 0.25f * in[left * from_x + y * from_y] + 0.5f * in[x * from_x + y * from_y] +
                               0.25f * in[right * from_x + y * from_y];
}
