// Each work-item counts bytes with counters of its own, which are bytes in local memory; then all are added up.
kernel void count_bytes(global const uchar* values, global uint* counts, local uchar* own, uint rounds) {
    const uint id = get_local_id(0), n = get_local_size(0);
    const size_t first = get_group_id(0) * (size_t)n * rounds;
    for (uint i = id; i < 128 * n; i += n)
        own[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < rounds; ++i)
        own[(values[first + i * n + id] & 127) * n + id]++;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint bin = id; bin < 128; bin += n) {
        uint sum = 0;
        for (uint i = 0; i < n; ++i)
            sum += own[bin * n + i];
        counts[get_group_id(0) * 128 + bin] = sum;
    }
}
