// Rounds of a block cipher with tables: each element of an explicit vector is put together of four entries of a table, which are gathered.
#define BYTE(x, i) ((x) >> 8 * (i) & 255)
#define ENTRY(a, b, c, d) table[BYTE(a, 0)] ^ table[256 + BYTE(b, 1)] ^ table[512 + BYTE(c, 2)] ^ table[768 + BYTE(d, 3)]
kernel void table_rounds(global const uint4* in, global uint4* out, global const uint* table, global const uint4* keys, int rounds) {
    const int i = get_global_id(0);
    uint4 state = in[i] ^ keys[0];
    for (int round = 1; round < rounds; ++round) {
        uint4 next;
        next.x = ENTRY(state.x, state.y, state.z, state.w);
        next.y = ENTRY(state.y, state.z, state.w, state.x);
        next.z = ENTRY(state.z, state.w, state.x, state.y);
        next.w = ENTRY(state.w, state.x, state.y, state.z);
        state = next ^ keys[round];
    }
    out[i] = state;
}
