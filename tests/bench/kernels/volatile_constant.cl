// A volatile variable that holds a constant, read in a loop whose end differs between work-items: no other work-item sees it.
kernel void volatile_constant(global const int* in, global int* out, int size) {
    volatile int scale = 3;
    for (int i = get_global_id(0); i < size; i += get_global_size(0)) out[i] = in[i] * scale + 1;
}
