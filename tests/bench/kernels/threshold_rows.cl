// Pixels above a threshold, 16 bytes for each work-item; rows are shorter than the launch, which is rounded up.
kernel void threshold_rows(global const uchar* in, global uchar* out, int step, int rows, int columns, uchar least) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= columns || y >= rows)
        return;
    const int place = mad24(y, step, x * 16);
    const uchar16 pixels = *(global const uchar16*)(in + place);
    *(global uchar16*)(out + place) = pixels > least ? (uchar16)(255) : (uchar16)(0);
}
