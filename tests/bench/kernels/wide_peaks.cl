// Peaks among neighbours in rows, eight numbers at once, with a way out for rows of zeros. One instruction asks about all numbers of a vector.
kernel void wide_peaks(global const float* in, global float* out, int pitch) {
    const int at = ((int)get_global_id(1) + 1) * pitch + (int)get_global_id(0) * 8 + 8;
    const float8 here = vload8(0, in + at);
    if (all(here == 0)) {
        vstore8(0, 0, out + at);
        return;
    }
    const float16 above = vload16(0, in + at - pitch - 1), below = vload16(0, in + at + pitch - 1);
    const float8 peaks =
        select(0, here, here >= above.s01234567 && here >= above.s12345678 && here >= above.s23456789);
    vstore8(select(0, peaks, here > below.s01234567 && here > below.s12345678 && here > below.s23456789), 0, out + at);
}
