// A product of two small matrices, which all work-items share, with a short row of each work-item.
kernel void small_operators(global const double* restrict a, global const double* restrict b, global double* restrict out,
                            global const double* restrict in) {
    const int item = get_global_id(0);
    for (int i = 0; i < 20; i++) {
        double sum = 0;
        for (int j = 0; j < 20; j++)
            for (int k = 0; k < 20; k++)
                sum += a[20 * i + j] * b[20 * j + k] * in[20 * item + k];
        out[20 * item + i] = sum;
    }
}
