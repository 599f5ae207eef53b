// A tridiagonal system for each work-item, in rows: each equation waits for the division of the one before.
kernel void tridiagonal(global const float* below, global const float* diagonal, global const float* above, global const float* right, global float* x) {
    const int first = get_global_id(0) * 128;
    float factors[129], last = 0.0f;
    factors[0] = 0.0f;
    for (int i = 0; i < 128; i++) {
        const float inverse = 1.0f / (diagonal[first + i] - below[first + i] * factors[i]);
        factors[i + 1] = above[first + i] * inverse;
        x[first + i] = last = (right[first + i] - below[first + i] * last) * inverse;
    }
    for (int i = 126; i >= 0; i--)
        x[first + i] = last = x[first + i] - factors[i + 1] * last;
}
