// A hash whose rounds look up each byte of eight words in tables of 64 bits (Streebog, Whirlpool), one work-item in a work-group. The statements of a round are
// neighbours, which a compiler may join with gathers.
#define LOOKUP(j) tables[j][(t[j] >> (i * 8)) & 255]
#define LOOKUPS (LOOKUP(0) ^ LOOKUP(1) ^ LOOKUP(2) ^ LOOKUP(3) ^ LOOKUP(4) ^ LOOKUP(5) ^ LOOKUP(6) ^ LOOKUP(7))

void mix(ulong* h, const ulong* m, local ulong (*tables)[256], global const ulong* constants) {
    ulong k[8], s[8], t[8];
    for (int i = 0; i < 8; ++i)
        t[i] = h[i];
    for (int i = 0; i < 8; ++i)
        k[i] = LOOKUPS;
    for (int i = 0; i < 8; ++i)
        s[i] = m[i];
    for (int r = 0; r < 12; ++r) {
        for (int i = 0; i < 8; ++i)
            t[i] = s[i] ^ k[i];
        for (int i = 0; i < 8; ++i)
            s[i] = LOOKUPS;
        for (int i = 0; i < 8; ++i)
            t[i] = k[i] ^ constants[r * 8 + i];
        for (int i = 0; i < 8; ++i)
            k[i] = LOOKUPS;
    }
    for (int i = 0; i < 8; ++i)
        h[i] ^= s[i] ^ k[i] ^ m[i];
}

kernel void table_hash(global const ulong* table, global const ulong* keys, global ulong* out, int times) {
    local ulong tables[8][256];
    for (int i = get_local_id(0); i < 256; i += get_local_size(0))
        for (int j = 0; j < 8; ++j)
            tables[j][i] = table[j * 256 + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    size_t id = get_global_id(0);
    ulong h[8], m[8];
    for (int i = 0; i < 8; ++i) {
        h[i] = 0x0101010101010101ul;
        m[i] = keys[id] * (2 * i + 1);
    }
    for (int n = 0; n < times; ++n) {
        m[7] += n;
        mix(h, m, tables, table);
    }
    for (int i = 0; i < 8; ++i)
        out[id * 8 + i] = h[i];
}
