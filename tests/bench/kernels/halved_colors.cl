// A picture of four bytes for each pixel at half its size: lanes convert and add the bytes in the order of memory.
kernel void halved_colors(global const uchar4* in, global uchar4* out, int width) {
    const int x = get_global_id(0), y = get_global_id(1);
    global const uchar4* const first = in + 4 * y * width + 2 * x;
    const uint4 sum = convert_uint4(first[0]) + convert_uint4(first[1]) + convert_uint4(first[2 * width]) +
                      convert_uint4(first[2 * width + 1]);
    out[y * width + x] = convert_uchar4((sum + 2) >> 2);
}
