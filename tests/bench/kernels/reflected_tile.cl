// A filter of a picture in local memory, whose edges are reflected: their indices are clamped, and few work-items load them.
int reflected(int x, int n) { return min(2 * (n - 1) - x, max(x, -x)); }

kernel void reflected_tile(global const float* in, global float* out, int width, int height) {
    local float tile[18][18];
    const int column = get_local_id(0), row = get_local_id(1), x = get_global_id(0), y = get_global_id(1);
    const int from_x = reflected(x - 1, width), from_y = reflected(y - 1, height);
    const int right = reflected(x + 15, width), below = reflected(y + 15, height);
    tile[row][column] = in[from_y * width + from_x];
    if (column < 2) tile[row][column + 16] = in[from_y * width + right];
    if (row < 2) tile[row + 16][column] = in[below * width + from_x];
    if (column < 2 && row < 2) tile[row + 16][column + 16] = in[below * width + right];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x >= width || y >= height) return;
    out[y * width + x] = tile[row][column] + tile[row][column + 2] - 2 * tile[row + 1][column + 1] + tile[row + 2][column] + tile[row + 2][column + 2];
}
