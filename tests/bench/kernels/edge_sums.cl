// Each node adds to all nodes that its edges lead to, with a loop of compare and exchange whose first round stands before it.
float add(global float* const address, const float value) {
    uint old, sum, found;
    *(float*)&old = *address;
    *(float*)&sum = *(float*)&old + value;
    while ((found = atomic_cmpxchg((global uint*)address, old, sum)) != old) {
        old = found;
        *(float*)&sum = *(float*)&old + value;
    }
    return *(float*)&old;
}
kernel void edge_sums(global const int* starts, global const int* places, global const float* x, global float* sums) {
    const int node = get_global_id(0);
    const int start = starts[node], end = starts[node + 1];
    for (int edge = start; edge < end; ++edge)
        add(&sums[places[edge]], x[node] / (float)(end - start));
}
