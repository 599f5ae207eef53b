// A step of an elimination whose launch has the size of the whole matrix: most work-items fail the guard, and their rows lie behind the
// end of the buffer.
kernel void guarded_rows(global float* a, int n, int from) {
    const int x = get_global_id(0) + from, y = get_global_id(1) + from;
    if (x < n && y < n)
        a[y * n + x] -= a[y * n + from - 1] * a[(from - 1) * n + x];
}
