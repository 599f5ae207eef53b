// Rows and columns from 64-bit indices, by a width that is the same for all work-items.
kernel void long_division(global float* out, global const float* in, ulong width, ulong height) {
    const ulong i = get_global_id(0);
    const ulong row = i / width, column = i % width;
    out[column * height + row] = in[i];
}
