// Shortest paths through the nodes of one block (Floyd and Warshall): fmin in an inner loop.
#define B 16
kernel void least_sums(global float* d, int n, int block) {
    local float row[B][B], column[B][B];
    const int x = get_local_id(0), y = get_local_id(1), gx = get_global_id(0), gy = get_global_id(1);
    row[y][x] = d[(block * B + y) * n + gx];
    column[y][x] = d[gy * n + block * B + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    float least = d[gy * n + gx];
    for (int i = 0; i < B; ++i)
        least = fmin(least, column[y][i] + row[i][x]);
    if (gx / B != block && gy / B != block)
        d[gy * n + gx] = least;
}
