// Histograms of each work-item in local memory, a bin's row apart.
kernel void local_histogram(global uint* out, global const uchar* in, int count, local uchar* bins) {
    const int l = get_local_id(0), size = get_local_size(0);
    for (int b = 0; b < 256; ++b)
        bins[b * size + l] = 0;
    for (int k = 0; k < count; ++k)
        bins[in[get_global_id(0) * count + k] * size + l]++;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = l; b < 256; b += size) {
        uint sum = 0;
        for (int k = 0; k < size; ++k)
            sum += bins[b * size + k];
        out[get_group_id(0) * 256 + b] = sum;
    }
}
