// Bytes with saturation: all that differs between work-items has at most 16 bits.
kernel void pixel_sums(global const uchar* a, global const uchar* b, global uchar* out, int n) {
    const int i = get_global_id(0);
    if (i >= n) return;
    const short difference = convert_short(a[i]) * 3 - convert_short(b[i]);
    out[i] = add_sat(a[i], b[i]) ^ convert_uchar_sat(difference);
}
