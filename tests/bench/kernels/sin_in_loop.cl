// A call of sin in a loop that is not unrolled.
kernel void sin_in_loop(global float* out, global const float* y, constant float* c, int n) {
    const size_t i = get_global_id(0);
    float a = 0;
    for (int k = 0; k < n; ++k)
        a += sin(y[i] * c[k]);
    out[i] = a;
}
