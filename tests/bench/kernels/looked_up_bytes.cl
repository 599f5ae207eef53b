// Each work-item looks up a byte in a table, at a place that shorts give.
kernel void looked_up_bytes(global const ushort* in, global uchar* out, global const uchar* table) {
    const int i = get_global_id(0);
    out[i] = table[(in[i] * 3 + in[i + 1]) >> 8];
}
