// A bitonic sort of each work-group in local memory, one element of a work-item.
kernel void sorting_network(global const uint* in, global uint* out) {
    local uint all[512];
    const int id = get_local_id(0);
    all[id] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint size = 2; size <= get_local_size(0); size <<= 1)
        for (uint distance = size >> 1; distance > 0; distance >>= 1) {
            const uint other = id ^ distance;
            if (other > id && (all[id] > all[other]) == ((id & size) == 0)) {
                const uint own = all[id];
                all[id] = all[other];
                all[other] = own;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    out[get_global_id(0)] = all[id];
}
