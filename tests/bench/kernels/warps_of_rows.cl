// The places of work-items in warps, from their numbers in groups of several rows.
kernel void warps_of_rows(global const ulong* in, global ulong* out, local ulong* shared) {
    uint id = get_local_id(1) * get_local_size(0) + get_local_id(0), place = get_local_id(0) % 32;
    local ulong* warp = shared + id / 32 * 32;
    size_t at = get_global_id(1) * get_global_size(0) + get_global_id(0);
    warp[place] = in[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[at] = warp[place ^ 1] + (id & 0x60);
}
