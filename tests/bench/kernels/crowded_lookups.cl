// A hash whose round looks up each byte of 16 words in tables of 64 bits (Groestl). Work-items as lanes have more values than a processor has registers.
#define LOOKUP(i, b) tables[b][(s[((i) + (b)) & 15] >> (8 * (b))) & 255]
#define WORD(i) t[i] = LOOKUP(i, 0) ^ LOOKUP(i, 1) ^ LOOKUP(i, 2) ^ LOOKUP(i, 3) ^ LOOKUP(i, 4) ^ LOOKUP(i, 5) ^ LOOKUP(i, 6) ^ LOOKUP(i, 7)

kernel void crowded_lookups(global const ulong* table, global ulong* out, int rounds) {
    local ulong tables[8][256];
    for (int i = get_local_id(0); i < 256; i += get_local_size(0))
        for (int b = 0; b < 8; ++b)
            tables[b][i] = table[b * 256 + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong x = out[get_global_id(0)];
    ulong s[16], t[16], sum = 0;
    for (int i = 0; i < 16; ++i)
        s[i] = x * (2 * i + 1);
    for (int r = 0; r < rounds; ++r) {
        for (int i = 0; i < 16; ++i)
            s[i] ^= (ulong)(i << 4) + r;
        WORD(0); WORD(1); WORD(2); WORD(3); WORD(4); WORD(5); WORD(6); WORD(7);
        WORD(8); WORD(9); WORD(10); WORD(11); WORD(12); WORD(13); WORD(14); WORD(15);
        for (int i = 0; i < 16; ++i)
            s[i] = t[i];
    }
    for (int i = 0; i < 16; ++i)
        sum += s[i];
    out[get_global_id(0)] = sum;
}
