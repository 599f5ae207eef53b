// A checksum with a table: each byte of a work-item's words is an index.
kernel void table_checksum(global const uint* data, constant uint* table, global uint* out, int words) {
    const int id = get_global_id(0);
    uint c = 0xffffffff;
    for (int i = 0; i < words; ++i) {
        uint word = data[id * words + i];
        for (int byte = 0; byte < 4; ++byte) {
            c = table[(c ^ word) & 255] ^ (c >> 8);
            word >>= 8;
        }
    }
    out[id] = ~c;
}
