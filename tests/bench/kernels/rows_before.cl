// Rows of constant length before and behind a work-item's own, as in CloverLeaf's kernels on grids with a border.
#define AT(x, y) ((y) * 324 + (x))

kernel void rows_before(global const double* dx, global const double* dy, global const double* pressure, global const double* density,
                        global double* out) {
    const int y = get_global_id(1);
    const int x = get_global_id(0);
    if (x >= 2 && x <= 321 && y >= 2 && y <= 321) {
        double across = (pressure[AT(x + 1, y)] - pressure[AT(x - 1, y)]) / (dx[x] + dx[x + 1]);
        double along = (pressure[AT(x, y + 1)] - pressure[AT(x, y - 1)]) / (dy[y] + dy[y + 1]);
        across = copysign(fmax(1.0e-16, fabs(across)), across);
        along = copysign(fmax(1.0e-16, fabs(along)), along);
        const double length = sqrt(across * across + along * along);
        const double least = fmin(fabs(dx[x] * length / across), fabs(dy[y] * length / along));
        if (across > 0)
            out[AT(x, y)] = 0;
        else
            out[AT(x, y)] = 2 * density[AT(x, y)] * least * least;
    }
}
