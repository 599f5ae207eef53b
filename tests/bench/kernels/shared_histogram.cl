// A histogram that the work-items of a group share in local memory.
kernel void shared_histogram(global const uchar* in, global uint* out, uint count) {
    local uint bins[256];
    for (uint b = get_local_id(0); b < 256; b += get_local_size(0))
        bins[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < count; i += get_global_size(0))
        atomic_inc(&bins[in[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint b = get_local_id(0); b < 256; b += get_local_size(0))
        atomic_add(&out[b], bins[b]);
}
