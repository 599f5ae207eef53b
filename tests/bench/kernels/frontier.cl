// A step of a breadth-first search: few work-items have something to do, at places that are apart.
kernel void frontier(global const int* first, global const int* targets, global const uchar* mask, global int* cost, int count) {
    const int node = get_global_id(0);
    if (node < count && mask[node])
        for (int i = first[node]; i < first[node] + 4; ++i) cost[targets[i]] = 1;
}
