// Each work-item reads the elements behind its own, whose places are ints: i + 1 may wrap around. In rows of two vectors, each row's places count.
kernel void line(global const float* in, global float* out, int n) {
    int i = get_global_id(0);
    if (i < n)
        out[i] = in[i] * 2.0f + in[i + 1] + in[i + 2];
}
kernel void plus_of_five(global const float* in, global float* out, int n) {
    int i = get_global_id(1), j = get_global_id(0);
    if (i >= 1 && i < n - 1 && j >= 1 && j < n - 1)
        out[i * n + j] = 0.2f * (in[i * n + j] + in[i * n + (j - 1)] + in[i * n + (1 + j)] + in[(1 + i) * n + j] + in[(i - 1) * n + j]);
}
