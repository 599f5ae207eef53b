// Windows of 3 x 3 pixels whose places are unsigned: at the left and the upper edge they wrap around, and only what is below the size, of 64 bits, is read.
kernel void unsigned_edges(global const float* image, constant float* weights, global float* out, ulong size) {
    const int x = get_global_id(0), y = get_global_id(1);
    float across = 0, down = 0;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const uint column = x + i - 1, row = y + j - 1;
            if (column >= size || row >= size)
                continue;
            const float pixel = image[row * size + column];
            across += weights[j * 3 + i] * pixel;
            down += weights[i * 3 + j] * pixel;
        }
    out[y * size + x] = clamp(sqrt(across * across + down * down), 0.0f, 1.0f);
}
