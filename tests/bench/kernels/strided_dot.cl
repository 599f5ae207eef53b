// Each work-item goes on by the size of the launch; a group has as many work-items as two vectors of doubles.
kernel void strided_dot(global const double* restrict a, global const double* restrict b, global double* restrict sums, local double* restrict own, long n) {
    size_t i = get_global_id(0);
    const size_t item = get_local_id(0);
    own[item] = 0;
    for (; i < n; i += get_global_size(0))
        own[item] += a[i] * b[i];
    for (int offset = get_local_size(0) / 2; offset > 0; offset /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < offset)
            own[item] += own[item + offset];
    }
    if (item == 0)
        sums[get_group_id(0)] = own[0];
}
