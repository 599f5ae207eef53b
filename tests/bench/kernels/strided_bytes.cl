// The largest of bytes that are 32 apart. The index of the first one is computed from arguments, so there is a loop one by one, of whose inner loop LLVM makes
// vectors of 64 bytes, loaded one by one.
kernel void strided_bytes(global const uchar* in, int step, int offset, int rows, int columns, global uchar* out) {
    local uchar greatest[16][32];
    const int x = get_global_id(0), y = get_global_id(1), row = get_local_id(1);
    if (x < 32 && y < rows) {
        global const uchar* from = in + mad24(y, step, mad24(x, 1, offset));
        uchar value = 0;
        for (int i = x; i < columns; i += 32, from += 32)
            value = max(value, from[0]);
        greatest[row][x] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x < 16 && y < rows)
        out[y * 16 + x] = max(greatest[row][x], greatest[row][x + 16]);
}
