// Sums in steps of the launch's size, up to an end that each work-item has: lanes leave the loop at different times.
kernel void strided_ends(global const double* restrict numbers, global const int* restrict ends, global double* restrict sums) {
    double sum = 0;
    for (size_t i = get_global_id(0); i < ends[get_global_id(0)]; i += get_global_size(0))
        sum += numbers[i];
    sums[get_global_id(0)] = sum;
}
