// A softmax of four channels by a whole group: work-items beyond the end return before the barriers, the others keep the greatest and the sum of all,
// which are numbers of the group, across the next one (decision 339).
kernel void guarded_softmax(global const float* input, global float* output, int rows, int n, int stride) {
    local float4 all[64];
    const int l = get_local_id(0), y = get_global_id(1);
    if (y >= rows) return;
    float4 greatest = -FLT_MAX;
    for (int i = l; i < n; i += 64) greatest = fmax(greatest, vload4(0, input + 4 * y + i * stride));
    all[l] = greatest;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 32; i > 0; i /= 2) {
        if (l < i) all[l] = fmax(all[l], all[l + i]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    greatest = all[0];
    float4 sum = 0;
    for (int i = l; i < n; i += 64) sum += exp(vload4(0, input + 4 * y + i * stride) - greatest);
    barrier(CLK_LOCAL_MEM_FENCE);
    all[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 32; i > 0; i /= 2) {
        if (l < i) all[l] += all[l + i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = all[0];
    for (int i = l; i < n; i += 64)
        vstore4(exp(vload4(0, input + 4 * y + i * stride) - greatest) / sum, 0, output + 4 * y + i * stride);
}
