// Each work-item processes the rows from its own to the next, which is one, as OpenCV's element-wise kernels do.
kernel void one_row_each(global uchar16* out, global const uchar16* a, global const uchar16* b, int step, int rows, int columns) {
    const int x = get_global_id(0), first = get_global_id(1);
    if (x < columns)
        for (int y = first, end = min(rows, first + 1); y < end; ++y)
            out[y * step + x] = convert_uchar16_sat(abs_diff(convert_int16(a[y * step + x]), convert_int16(b[y * step + x])));
}
