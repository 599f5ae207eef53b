// Division and remainder by a value that is the same for all work-items.
kernel void uniform_division(global uint* out, global const uint* x, uint d, int e) {
    const size_t i = get_global_id(0);
    out[i] = x[i] / d + x[i] % d + (uint)((int)x[i] / e);
}
