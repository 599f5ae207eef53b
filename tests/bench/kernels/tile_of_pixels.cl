// A filter along rows of pixels of three bytes, by way of local memory, that reflects places at the edges of the picture: no branch, but places that are no row of
// lanes for the compiler.
#define SIDE 16
kernel void tile_of_pixels(global const uchar* in, global int* out, int width, int height) {
    const int x = get_global_id(0), y = get_global_id(1), column = get_local_id(0), row = get_local_id(1);
    local uchar3 tile[SIDE][2 * SIDE];
    for (int part = 0; part < 2; ++part) {
        const int place = abs(x - 1 + part * SIDE);
        tile[row][column + part * SIDE] = vload3(min(place, 2 * width - 2 - place) + y * width, in);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int3 sum = convert_int3(tile[row][column]) + 2 * convert_int3(tile[row][column + 1]) +
                     convert_int3(tile[row][column + 2]);
    if (x < width && y < height)
        vstore3(sum, y * width + x, out);
}
