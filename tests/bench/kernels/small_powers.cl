// Powers with a constant exponent that a product or a root replaces.
kernel void small_powers(global float* out, global const float* x) {
    const size_t i = get_global_id(0);
    out[i] = pow(x[i], 2.0f) + pow(x[i], 0.5f) + pow(x[i], -1.0f) + pow(x[i], 3.0f) + pown(x[i], 2);
}
