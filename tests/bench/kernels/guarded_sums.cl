// Work-items beyond the end return before the barrier; the others run a loop first (decision 286).
kernel void guarded_sums(global const float* values, global float* sums, int n, int rounds) {
    local float all[64];
    const int i = get_global_id(0), l = get_local_id(0);
    if (i >= n) return;
    float x = 0;
    for (int j = 0; j < rounds; ++j) x += values[j] * (values[i] + j);
    all[l] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[i] = x + all[0];
}
