// Elimination in a matrix of 6 x 6 for each work-item. Without lanes the matrix is in registers.
kernel void small_systems(global float* matrices) {
    int item = get_global_id(0);
    float a[36];
    for (int i = 0; i < 36; i++)
        a[i] = matrices[item * 36 + i];
    for (int k = 0; k < 6; k++) {
        float inverse = 1.0f / a[k * 7];
        for (int i = k + 1; i < 6; i++) {
            float f = a[i * 6 + k] * inverse;
            a[i * 6 + k] = f;
            for (int j = k + 1; j < 6; j++)
                a[i * 6 + j] -= f * a[k * 6 + j];
        }
    }
    for (int i = 0; i < 36; i++)
        matrices[item * 36 + i] = a[i];
}
