// A permutation of 256 bytes is kept in words: it is set by words, shuffled by bytes, and read by bytes, as stream ciphers do.
kernel void shuffle(global const uint* keys, global uint* out, int rounds) {
    uint words[64];
    uchar* bytes = (uchar*)words;
    const size_t id = get_global_id(0);
    uint key[4];
    for (int i = 0; i < 4; ++i) key[i] = keys[4 * id + i];
    for (uint i = 0; i < 64; ++i) words[i] = 0x03020100u + i * 0x04040404u;
    uint other = 0;
    for (uint i = 0; i < 256; ++i) {
        other = (other + bytes[i] + ((const uchar*)key)[i & 15]) & 255;
        const uchar kept = bytes[i];
        bytes[i] = bytes[other];
        bytes[other] = kept;
    }
    uint sum = 0;
    for (int r = 0; r < rounds; ++r) {
        const uint i = (r + 1) & 255;
        other = (other + bytes[i]) & 255;
        const uchar kept = bytes[i];
        bytes[i] = bytes[other];
        bytes[other] = kept;
        sum = rotate(sum, 8u) ^ bytes[(bytes[i] + kept) & 255];
    }
    out[id] = sum;
}
