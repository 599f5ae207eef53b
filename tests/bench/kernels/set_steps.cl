// What is in one of two sets and not in the other, tile by tile: which of three ways a step takes cannot be foreseen, and only one of them stores. The numbers
// are not sorted, which makes no difference to the time.
kernel void set_steps(global const int* a, global const int* b, global int* out, global uint* counts, uint tile) {
    const uint i = get_global_id(0);
    uint x = i * tile, y = i * tile, place = i * tile;
    const uint x_end = x + tile, y_end = y + tile;
    while (x < x_end && y < y_end) {
        if (a[x] == b[y]) {
            ++x;
            ++y;
        } else if (a[x] < b[y]) {
            out[place] = a[x];
            ++place;
            ++x;
        } else {
            ++y;
        }
    }
    counts[i] = place - i * tile;
}
