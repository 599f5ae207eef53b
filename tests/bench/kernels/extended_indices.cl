// Indices of 32 bits that may wrap around: of structures, and of a loop whose step only the launch knows.
kernel void extended_indices(global const float* in, global float* out, int n) {
    const int i = get_global_id(0), first = i << 2;
    float sum = in[first] * in[first + 3] + in[first + 1] * in[first + 2];
    for (int at = i; at < n; at += get_global_size(0)) sum += in[at];
    out[i] = sum;
}
