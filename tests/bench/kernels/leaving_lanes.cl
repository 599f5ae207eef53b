// Lanes leave a loop at different iterations, with values of 64 bits, of 32 bits, and under a condition in the loop.
kernel void steps_to_one(global uint* steps) {
    ulong x = get_global_id(0) + 1;
    uint count = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x >> 1;
        ++count;
    }
    steps[get_global_id(0)] = count;
}

kernel void find_keys(global const uint* keys, global const uint* table, global uint* values, uint mask) {
    const uint key = keys[get_global_id(0)];
    uint place = (key * 2654435761u) & mask, value = 0;
    while (table[2 * place] != 0) {
        if (table[2 * place] == key) {
            value = table[2 * place + 1];
            break;
        }
        place = (place + 1) & mask;
    }
    values[get_global_id(0)] = value;
}
