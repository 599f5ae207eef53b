// A filter over a row, of which each work-item computes a part, as code for processors does. Beyond its ends the row goes on with the numbers of `edges`,
// where there are some, or with its own last ones.
double number_at(global const double* row, global const double* edges, long x, ulong n, int reach, uchar has_edges) {
    if (x >= 0 && x < n)
        return row[x];
    if (x < 0)
        return has_edges ? edges[reach + x] : row[0];
    return has_edges ? edges[reach + x - n] : row[n - 1];
}

kernel void taps_by_parts(global const double* row, global const double* edges, global const double* taps,
                          global double* out, ulong n, int reach, uchar has_edges, double old) {
    const ulong length = (n + get_global_size(0) - 1) / get_global_size(0), from = get_global_id(0) * length;
    const ulong to = min(from + length, n);
    for (ulong i = from; i < to; ++i) {
        double sum = 0;
        for (int j = -reach; j <= reach; ++j)
            sum += taps[reach + j] * number_at(row, edges, (long)i + j, n, reach, has_edges);
        out[i] = old != 0 ? old * out[i] + sum : sum;
    }
}
