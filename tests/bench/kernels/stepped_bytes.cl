// A table of bytes, read with a step: LLVM extracts the bytes from registers.
kernel void stepped_bytes(global const uchar* table, global uint* out, int rounds) {
    uint sum = get_global_id(0);
    for (int round = 0; round < rounds; ++round) sum += table[(get_global_id(0) * 7 + round * 13) & 255] ^ sum >> 3;
    out[get_global_id(0)] = sum;
}
