// One work-item for each part of the data, as programs for processors write elementwise operations: steps of a system of equations.
kernel void parts_of_rows(global double* x, global double* y, ulong n, double step) {
    const ulong size = (n + get_global_size(0) - 1) / get_global_size(0);
    const ulong begin = get_global_id(0) * size, end = min(begin + size, n);
    for (ulong k = begin; k < end; ++k) {
        double a = x[k], b = y[k];
        for (int i = 0; i < 4; ++i) {
            const double u = a + step * (b - a * b), v = b - step * (a * 0.3 - a * b);
            a += step * (v - u * v);
            b -= step * (u * 0.3 - u * v);
        }
        x[k] = a;
        y[k] = b;
    }
}
