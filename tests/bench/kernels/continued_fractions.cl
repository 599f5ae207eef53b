// Continued fractions with roots, in doubles: each division waits for the root before it, and each root for the division.
kernel void continued_fractions(global const double* first, global double* values, int terms) {
    const int i = get_global_id(0);
    double value = first[i];
    for (int k = 0; k < terms; ++k)
        value = 1.0 / (first[i] + sqrt(1.0 + value * value));
    values[i] = value;
}
