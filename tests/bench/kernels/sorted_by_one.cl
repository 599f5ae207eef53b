// The first work-item of each group sorts the group's few structures. It copies them through one of its own, which is declared before the guard.
typedef struct { int key; float values[27]; } Entry;

kernel void sorted_by_one(global Entry* entries, global const int* counts, int rounds) {
    global Entry* const own = entries + 16 * get_group_id(0);
    const int count = counts[get_group_id(0)];
    Entry other;
    if (get_local_id(0) == 0)
        for (int round = 0; round < rounds; ++round)
            for (int i = 1; i < count; ++i)
                for (int k = i; k > 0 && (round & 1 ? own[k].key > own[k - 1].key : own[k].key < own[k - 1].key); --k) {
                    other = own[k];
                    own[k] = own[k - 1];
                    own[k - 1] = other;
                }
}
