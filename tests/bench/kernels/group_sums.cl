// A collective function adds up the numbers of a work-group.
kernel void group_sums(global const float* values, global float* sums) {
    const float sum = work_group_reduce_add(values[get_global_id(0)]);
    if (get_local_id(0) == 0) sums[get_group_id(0)] = sum;
}
