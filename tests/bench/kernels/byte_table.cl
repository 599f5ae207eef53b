// Rounds of a cipher over the 16 bytes of each work-item, by a table of 256 bytes.
kernel void byte_table(global uchar* blocks, global const uchar* table, global const uchar* keys) {
    uchar state[16];
    for (int i = 0; i < 16; i++)
        state[i] = blocks[get_global_id(0) * 16 + i];
    for (int round = 0; round < 10; round++) {
        uchar next[16];
        for (int i = 0; i < 16; i++)
            next[i] = table[state[i * 5 % 16]] ^ keys[round * 16 + i];
        for (int i = 0; i < 16; i++)
            state[i] = next[i] ^ next[(i + 1) % 16] << 1;
    }
    for (int i = 0; i < 16; i++)
        blocks[get_global_id(0) * 16 + i] = state[i];
}
