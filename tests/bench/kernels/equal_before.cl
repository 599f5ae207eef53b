// The place of each number among the equal digits of its work-group, as radix sorts scatter them: a triangle of comparisons.
kernel void equal_before(global const uint* in, global uint* out, uint size, uint low) {
    local uint digits[128];
    const uint gid = get_global_id(0), lid = get_local_id(0);
    uint digit = 0;
    if (gid < size) {
        digit = in[gid] >> low & 15;
        digits[lid] = digit;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (gid >= size)
        return;
    uint before = 0;
    for (uint i = 0; i < lid; i++)
        if (digits[i] == digit)
            before++;
    out[gid] = before;
}
