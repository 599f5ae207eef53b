// Three bytes a pixel: the index is three times an id that is truncated to 32 bits (decision 289).
kernel void packed_pixels(global const uchar* colors, global uchar* greys, int width) {
    const int i = get_global_id(1) * width + get_global_id(0);
    greys[i] = (colors[3 * i] * 77 + colors[3 * i + 1] * 150 + colors[3 * i + 2] * 29) >> 8;
}
