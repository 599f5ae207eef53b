// A matrix is transposed by tiles in local memory, whose rows are longer by one so that columns are in different banks. Each side of a tile is asked whether
// it is within the matrix.
#define SIDE 16

kernel void guarded_transposition(global const float* in, global float* out, local float* tile, int width, int height) {
    const int x = get_global_id(0), y = get_global_id(1);
    const int column = get_local_id(0), row = get_local_id(1);
    if (x < width && y < height)
        tile[row * (SIDE + 1) + column] = in[y * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    const int to_x = get_group_id(1) * SIDE + column, to_y = get_group_id(0) * SIDE + row;
    if (to_x < height && to_y < width)
        out[to_y * height + to_x] = tile[column * (SIDE + 1) + row];
}
