// Every second point of a grid is relaxed, but not those at its edges: half of the lanes.
kernel void red_black(global float* u, global const float* f, int n, int color) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1 || (x + y) % 2 != color)
        return;
    const int i = y * n + x;
    u[i] = 0.25f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - f[i]);
}
