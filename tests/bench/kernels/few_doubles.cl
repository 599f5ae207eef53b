// A stencil of floats with a factor that is a double.
kernel void few_doubles(global float* out, global const float* in, global const float* field, int nx, int ny) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x > 0 && y > 0 && x < nx - 1 && y < ny - 1)
        out[y * nx + x] = in[y * nx + x] - 0.7 * (field[y * nx + x + 1] - field[y * nx + x] + field[(y + 1) * nx + x]);
}
