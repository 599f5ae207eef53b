// Sub-groups in kernels with barriers: each work-group adds one row.
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
kernel void sub_group_rows(global const float* in, global float* out, int width) {
    local float sums[64];
    const int id = get_local_id(0), row = get_group_id(0);
    float sum = 0;
    for (int column = id; column < width; column += get_local_size(0))
        sum += in[row * width + column];
    sum = sub_group_reduce_add(sum);
    sums[id] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_sub_group_local_id() == 0)
        sums[get_sub_group_id()] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0) {
        sum = 0;
        for (uint i = 0; i < get_num_sub_groups(); ++i)
            sum += sums[i];
        out[row] = sum;
    }
}
