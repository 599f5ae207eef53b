// A product of matrices whose rows are numbered by dimension 0, in groups that the implementation chooses.
kernel void row_products(global float* c, global const float* a, global const float* b, int n) {
    const int row = get_global_id(0), column = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; ++k)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
