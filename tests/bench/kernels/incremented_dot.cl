// The dot product of CLBlast and other libraries with the signature of BLAS: elements of the vectors are an argument apart, which is 1.
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void incremented_dot(int n, global const float* restrict x, int offset_x, int inc_x,
                                                                            global const float* restrict y, int offset_y, int inc_y,
                                                                            global float* out) {
    local float sums[64];
    const int lid = get_local_id(0);
    float sum = 0;
    for (int id = get_group_id(0) * 64 + lid; id < n; id += 64 * get_num_groups(0))
        sum += x[id * inc_x + offset_x] * y[id * inc_y + offset_y];
    sums[lid] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 32; s > 0; s >>= 1) {
        if (lid < s) sums[lid] += sums[lid + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0) out[get_group_id(0)] = sums[0];
}
