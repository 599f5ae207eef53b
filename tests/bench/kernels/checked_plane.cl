// Elements of an image in a buffer, written by a function that checks the place after it has computed it.
inline void put(global float* values, int width, int height, int2 at, float value) {
    const int place = at.x + at.y * width;
    if (at.x < 0 || at.x >= width || at.y < 0 || at.y >= height)
        return;
    values[place] = value;
}

kernel void checked_plane(global float* values, int width, int height, float value) {
    put(values, width, height, (int2)(get_global_id(0), get_global_id(1)), value);
}
