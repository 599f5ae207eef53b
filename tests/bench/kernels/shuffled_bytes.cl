// Vectors of eight whose elements move to computed places: bytes and shorts, whose vectors of several work-items fill a register.
kernel void shuffled_bytes(global const uchar8* bytes, global const uchar8* byte_places, global const ushort8* shorts,
                           global const ushort8* short_places, global uchar8* bytes_out, global ushort8* shorts_out, int rounds) {
    const int id = get_global_id(0);
    uchar8 a = bytes[id];
    ushort8 b = shorts[id];
    for (int round = 0; round < rounds; ++round) {
        a = shuffle(a, byte_places[id] + (uchar)round) + (uchar)round;
        b = shuffle(b, short_places[id] + (ushort)round) + (ushort)round;
    }
    bytes_out[id] = a;
    shorts_out[id] = b;
}
