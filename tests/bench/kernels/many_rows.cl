// Each work-item uses one element of each of 96 rows of memory, as chemistry with a row for each reaction does: each row is on pages of its own.
#define ROW(k) (k) * 4224 + id
#define RATE(k) forward[ROW(k)] = forward[ROW(k)] * shared0; backward[ROW(k)] = backward[ROW(k)] * shared1;
#define RATES(k) RATE(k) RATE(k + 1) RATE(k + 2) RATE(k + 3) RATE(k + 4) RATE(k + 5) RATE(k + 6) RATE(k + 7)
kernel void many_rows(global double* forward, global double* backward, global const double* factors) {
    size_t id = get_global_id(0);
    double shared0 = factors[id], shared1 = factors[4224 + id] * shared0;
    RATES(0)
    RATES(8)
    RATES(16)
    RATES(24)
    RATES(32)
    RATES(40)
}
