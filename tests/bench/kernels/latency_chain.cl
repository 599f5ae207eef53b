// One chain of operations, each of which waits for the one before.
kernel void latency_chain(global float* out, global const float* x) {
    const size_t i = get_global_id(0);
    float v = x[i];
    for (int k = 0; k < 200; ++k)
        v = 3.5f * v * (1.0f - v);
    out[i] = v;
}
