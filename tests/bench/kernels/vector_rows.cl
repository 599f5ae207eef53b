// A product of matrices by rows of float4: all operations on them are element by element, and the vectors of neighbouring work-items are side by side in memory.
kernel void vector_rows(global const float4* a, global const float4* b, global float4* c, int n) {
    const int x = get_global_id(0), y = get_global_id(1), rows = 4 * y;
    float4 sums[4] = {0, 0, 0, 0};
    for (int k = 0; k < n; ++k)
        for (int i = 0; i < 4; ++i) {
            const float4 factors = a[(rows + i) * n + k];
            sums[i] += factors.x * b[4 * k * n + x] + factors.y * b[(4 * k + 1) * n + x] +
                       factors.z * b[(4 * k + 2) * n + x] + factors.w * b[(4 * k + 3) * n + x];
        }
    for (int i = 0; i < 4; ++i)
        c[(rows + i) * n + x] = sums[i];
}
