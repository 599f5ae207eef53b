// Each work-item adds to elements of its own in local memory by atomic operations, as kernels do whose phases share the sums (decision 387).
kernel void local_sums(global const float* values, global float* least, global int* counts, int n) {
    local int count[256];
    local float small[256];
    const int l = get_local_id(0), i = get_global_id(0), items = get_global_size(0);
    count[l] = 0;
    small[l] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < n; ++k) {
        const float value = values[k * items + i];
        if (value < 0.5f) atomic_inc(&count[l]);
        atomic_fetch_min_explicit((volatile local atomic_float*)&small[l], value, memory_order_relaxed, memory_scope_work_group);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    counts[i] = count[l];
    least[i] = small[l];
}
