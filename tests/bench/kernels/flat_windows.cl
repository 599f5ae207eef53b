// Ids of one dimension count the pixels of a picture: rows are quotients by its width, columns remainders. Each work-item reads a window around its pixel.
kernel void flat_windows(global const float* restrict in, global float* restrict out, global const int* restrict moves,
                         int width, int height, int pitch, int border, int count) {
    int id = get_global_id(0);
    if (id >= width * height)
        return;
    int row = id / width + border, column = id % width + border;
    float most = 0;
    for (int k = 0; k < count; ++k) {
        float value = in[(row + moves[2 * k]) * pitch + column + moves[2 * k + 1]];
        most = max(most, value * (k + 1));
    }
    out[row * pitch + column] = most;
}
