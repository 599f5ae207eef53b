// A launch of 64 work-items, in groups of 16, whose code is long: five copies of a function with a hundred minima and maxima.
int score(global const uchar* at, int width) {
    int differences[16];
    const int middle = at[0];
    for (int i = 0; i < 8; ++i) {
        differences[i] = middle - at[(i - 4) * width + 3];
        differences[i + 8] = middle - at[(4 - i) * width - 3];
    }
    int best = 0;
    for (int i = 0; i < 16; i += 2) {
        int least = differences[(i + 1) & 15];
        for (int j = 2; j < 9; ++j)
            least = min(least, differences[(i + j) & 15]);
        best = max(best, max(min(least, differences[i]), min(least, differences[(i + 9) & 15])));
    }
    return best;
}

kernel void few_items(global const uchar* image, global int* out, int width, int count) {
    const int i = get_global_id(0);
    if (i >= count)
        return;
    global const uchar* at = image + (i / 8 * 6 + 8) * width + i % 8 * 9 + 8;
    const int own = score(at, width);
    if (own <= score(at - 1, width) || own <= score(at + 1, width) || own <= score(at - width, width) ||
        own <= score(at + width, width))
        return;
    out[i] = own;
}
