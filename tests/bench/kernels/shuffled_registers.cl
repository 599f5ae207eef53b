// Shuffles of vectors of two kinds that each fill a register of 128 bits: one instruction for each work-item's.
kernel void shuffled_registers(global const uchar16* bytes, global const uchar16* byte_places, global uchar16* bytes_out, global const int4* words,
                               global const uint4* word_places, global int4* words_out, int rounds) {
    const int id = get_global_id(0);
    uchar16 a = bytes[id];
    int4 b = words[id];
    for (int round = 0; round < rounds; ++round) {
        a = shuffle(a, byte_places[id] + (uchar)round) + (uchar)round;
        b = shuffle(b, word_places[id] + (uint)round) + round;
    }
    bytes_out[id] = a;
    words_out[id] = b;
}
