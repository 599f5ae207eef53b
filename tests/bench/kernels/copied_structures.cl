// Structures are copied byte by byte between address spaces, as OpenCL C 1.2 has no memcpy for them, and a pointer walks through one of them.
typedef struct { uint length, words[60]; } Schedule;

kernel void expand(global const uint* keys, global Schedule* schedules, int rounds) {
    const size_t id = get_global_id(0);
    Schedule schedule;
    schedule.length = rounds;
    for (int i = 0; i < 60; ++i) schedule.words[i] = i;
    for (int i = 0; i < 8; ++i) schedule.words[i] = keys[8 * id + i];
    uint* key = schedule.words;
    for (int i = 0; i < rounds; ++i) {
        key[8] = key[0] ^ rotate(key[7], 8u) ^ (i + 1);
        for (int k = 1; k < 8; ++k) key[8 + k] = key[k] ^ key[7 + k];
        key += 8;
    }
    global char* to = (global char*)(schedules + id);
    const char* from = (const char*)&schedule;
    for (uint i = 0; i < sizeof(Schedule); ++i) to[i] = from[i];
}
