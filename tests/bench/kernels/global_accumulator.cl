// An element of a buffer is the sum of an inner loop.
kernel void global_accumulator(global float* out, global const float* x, global const float* y, int n) {
    const int i = get_global_id(0);
    for (int k = 0; k < n; ++k)
        out[i] += x[k] * y[i];
}
