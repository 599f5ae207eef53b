// Sums of clusters in local memory: atomic operations there are faster without lanes (decision 288).
kernel void local_sums(global const float2* points, global const int* clusters, global int* sums, global int* counts) {
    local int sum[32], count[16];
    const int l = get_local_id(0), i = get_global_id(0);
    if (l < 32) sum[l] = 0;
    if (l < 16) count[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int cluster = clusters[i];
    atomic_add(&sum[cluster * 2], (int)(points[i].x * 1000));
    atomic_add(&sum[cluster * 2 + 1], (int)(points[i].y * 1000));
    atomic_inc(&count[cluster]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 32) sums[get_group_id(0) * 32 + l] = sum[l];
    if (l < 16) counts[get_group_id(0) * 16 + l] = count[l];
}
