// Three steps of a finite-difference time-domain method. The guards of the launches leave out the first or the last column.
kernel void update_y(global float* y, global const float* field, int width, int height) {
    const int column = get_global_id(0), row = get_global_id(1);
    if (row >= 1 && row < height && column < width)
        y[row * width + column] -= 0.5f * (field[row * width + column] - field[(row - 1) * width + column]);
}

kernel void update_x(global float* x, global const float* field, int width, int height) {
    const int column = get_global_id(0), row = get_global_id(1);
    if (row < height && column >= 1 && column < width)
        x[row * width + column] -= 0.5f * (field[row * width + column] - field[row * width + column - 1]);
}

kernel void update_field(global float* field, global const float* x, global const float* y, int width, int height) {
    const int column = get_global_id(0), row = get_global_id(1);
    if (row < height - 1 && column < width - 1)
        field[row * width + column] -= 0.7f * (x[row * width + column + 1] - x[row * width + column] +
                                               y[(row + 1) * width + column] - y[row * width + column]);
}
