// Normally distributed numbers by Marsaglia's polar method in doubles: a logarithm, a division and a root behind each other.
kernel void polar_pairs(global const double* uniform, global double* sums, int count) {
    size_t id = get_global_id(0);
    double sum = 0;
    for (int k = 0; k < count; ++k) {
        double x = 2 * uniform[2 * k * 4096 + id] - 1, y = 2 * uniform[(2 * k + 1) * 4096 + id] - 1;
        double squares = x * x + y * y;
        if (squares <= 1)
            sum += fmax(fabs(x), fabs(y)) * sqrt(-2 * log(squares) / squares);
    }
    sums[id] = sum;
}
