// Products of the columns of a matrix with all later columns: each work-item has another number of rounds, and adds to global memory.
kernel void triangle_products(global float* sums, global const float* in, int columns, int rows) {
    const int i = get_global_id(0);
    if (i < columns - 1)
        for (int k = i + 1; k < columns; ++k) {
            for (int r = 0; r < rows; ++r)
                sums[i * columns + k] += in[r * columns + i] * in[r * columns + k];
            sums[k * columns + i] = sums[i * columns + k];
        }
}
