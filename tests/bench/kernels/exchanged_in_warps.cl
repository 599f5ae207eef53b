// Numbers that 32 neighbouring work-items exchange in local memory, in turns within each four. The loop is unrolled.
kernel void exchanged_in_warps(global ulong* data, local ulong* numbers) {
    const uint thread = get_local_id(0) % 32, next = (thread & 28) | ((thread + 3) & 3);
    const uint warp = (get_local_id(1) * get_local_size(0) + get_local_id(0)) / 32;
    local ulong* own = numbers + warp * 32;
    const size_t at = get_global_id(1) * get_global_size(0) + get_global_id(0);
    ulong value = data[at];
    for (int i = 0; i < 4; ++i) {
        own[thread] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        value += own[next] * 3 + 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        own[thread] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        value += own[next] * 5 + 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        own[thread] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        value = own[next] * 7 + 1;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    data[at] = value;
}
