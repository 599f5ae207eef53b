// A step of a Fourier transform along columns, as VkFFT's plans for long ones do: the column is a remainder of the global id, the block of rows a
// quotient. Neighbours in x are neighbours in memory, except at the ends of rows.
kernel __attribute__((reqd_work_group_size(64, 8, 1))) void transformed_columns(global float2* out, global const float2* in,
                                                                                global const float2* turns) {
    local float2 tile[64 * 32];
    const uint x = get_local_id(0), row = get_local_id(1);
    const uint column = get_global_id(0) % 512, block = get_global_id(0) / 512 * 16384;
    float2 value[4];
    for (uint i = 0; i < 4; ++i) value[i] = in[block + column + (row + 8 * i) * 512];
    for (uint i = 0; i < 4; ++i) {
        const float2 sum = value[i] + value[i ^ 2], turn = turns[row * 4 + i];
        tile[(row * 4 + i) * 64 + x] = (float2)(sum.x * turn.x - sum.y * turn.y, sum.x * turn.y + sum.y * turn.x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < 4; ++i) value[i] = tile[(row + 8 * i) * 64 + x];
    for (uint i = 0; i < 4; ++i) {
        const float2 turn = turns[(row + 8 * i) * 512 + column], v = value[i] - value[i ^ 1];
        out[block + column + (row + 8 * i) * 512] = (float2)(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
    }
}
