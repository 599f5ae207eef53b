// A power of arguments, behind a guard: the same for all work-items. Adam's correction of its averages.
kernel void uniform_power(global float* x, global const float* mean, global const float* square, float b1, float b2,
                          float rate, float least, int step, int n) {
    const int i = get_global_id(0);
    if (i >= n)
        return;
    x[i] += rate * sqrt(1 - pow(b2, step)) / (1 - pow(b1, step)) * mean[i] / (sqrt(square[i]) + least);
}
