// A picture is filled with one pixel of four bytes. Work-items are numbered by an int, whose remainder has a sign.
kernel void repeated_pixel(global const uchar* pixel, global uchar* out, int pixels) {
    const int i = get_global_id(0);
    if (i < pixels * 4)
        out[i / 4 * 4 + i % 4] = pixel[i % 4];
}
