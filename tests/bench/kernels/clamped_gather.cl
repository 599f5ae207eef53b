// Neighbours in three dimensions with clamped indices.
kernel void clamped_gather(global float* out, global const float* in, int nx, int ny, int nz) {
    const int x = get_global_id(0), y = get_global_id(1);
    for (int z = 0; z < nz; ++z) {
        const int c = x + nx * (y + ny * z);
        const int w = x == 0 ? c : c - 1, e = x == nx - 1 ? c : c + 1;
        const int n = y == 0 ? c : c - nx, s = y == ny - 1 ? c : c + nx;
        const int b = z == 0 ? c : c - nx * ny, t = z == nz - 1 ? c : c + nx * ny;
        out[c] = in[c] * 0.4f + 0.1f * (in[w] + in[e] + in[n] + in[s] + in[b] + in[t]);
    }
}
