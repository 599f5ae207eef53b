// Pixels of three bytes from a picture that is reflected at its edges until the place is inside.
int reflected(int place, int size) {
    if (place < 0 || place >= size) {
        if (size == 1)
            return 0;
        do
            place = place < 0 ? -place - 1 : 2 * size - 1 - place;
        while (place < 0 || place >= size);
    }
    return place;
}

kernel void bordered(global const uchar* in, global uchar* out, int width, int height, int border) {
    const int x = get_global_id(0), y = get_global_id(1), out_width = width + 2 * border;
    if (x < out_width && y < height + 2 * border)
        vstore3(vload3(reflected(y - border, height) * width + reflected(x - border, width), in), y * out_width + x, out);
}
