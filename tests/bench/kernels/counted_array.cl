// A private array of bytes that loops with constant bounds index: one row of a table of distances.
kernel void counted_array(global const uchar* a, global const uchar* b, global int* out, int n) {
    const int g = get_global_id(0);
    uchar row[33];
    for (int j = 0; j <= 32; ++j)
        row[j] = j;
    for (int i = 0; i < n; ++i) {
        uchar before = row[0];
        row[0] = i + 1;
        for (int j = 1; j <= 32; ++j) {
            const uchar here = row[j];
            row[j] = min(min(row[j] + 1, row[j - 1] + 1), before + (a[g * n + i] != b[g * 32 + j - 1]));
            before = here;
        }
    }
    out[g] = row[32];
}
