// A counter of 32 bits that steps by the size of the launch, whose type has 64 bits.
kernel void stepped_counter(global const float* in, global float* out, uint n) {
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = in[i] * in[i] + 1;
}
