// One pass of a radix sort: work-items count the digits of four keys, scan the counts of the group, and store the keys in order. The scans
// are loops in loops, the vectors are in the outer one.
kernel void nested_scans(global const uint4* in, global uint* out, local uint* sums, int count, int n) {
    const int l = get_local_id(0), size = get_local_size(0);
    local uint totals[16];
    if (l < 16)
        totals[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < count; ++k) {
        const int i = (get_group_id(0) * count + k) * size + l;
        uint counts[16] = {0};
        uint4 keys, digits;
        if (i < n) {
            keys = in[i];
            digits = keys >> 8 & 15u;
            counts[digits.x]++;
            counts[digits.y]++;
            counts[digits.z]++;
            counts[digits.w]++;
        }
        for (int digit = 0; digit < 16; ++digit) {
            sums[l] = 0;
            sums[size + l] = counts[digit];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int step = 1; step < size; step *= 2) {
                const uint before = sums[size + l - step];
                barrier(CLK_LOCAL_MEM_FENCE);
                sums[size + l] += before;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            counts[digit] = sums[size + l - 1];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (i < n) {
            global uint* to = out + get_group_id(0) * 16384;
            to[digits.x * 1024 + totals[digits.x] + counts[digits.x]++] = keys.x;
            to[digits.y * 1024 + totals[digits.y] + counts[digits.y]++] = keys.y;
            to[digits.z * 1024 + totals[digits.z] + counts[digits.z]++] = keys.z;
            to[digits.w * 1024 + totals[digits.w] + counts[digits.w]++] = keys.w;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l == size - 1)
            for (int digit = 0; digit < 16; ++digit)
                totals[digit] += counts[digit];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
