// Neighbours in a grid whose ends meet: remainders of indices that begin below zero.
kernel void periodic_grid(global const float* in, global float* out, int width, int height) {
    const int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum += in[(y - dy + height) % height * width + (x - dx + width) % width];
    out[y * width + x] = sum;
}
