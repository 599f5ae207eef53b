// Rows backwards under conditions: each round of an alignment walks along an anti-diagonal.
kernel void anti_diagonals(global const uchar* query, global const uchar* texts, global int* out, int length) {
    local int now[128], before[128];
    const int id = get_local_id(0), group = get_group_id(0), size = get_local_size(0);
    int best = 0;
    now[id] = before[id] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int round = 0; round < length + size; ++round) {
        const int place = round - id;
        const int diagonal = id > 0 ? before[id - 1] : 0;
        int score = 0;
        if (place >= 0 && place < length)
            score = max(diagonal + (query[id] == texts[group * length + place] ? 3 : -2), 0);
        best = max(best, score);
        barrier(CLK_LOCAL_MEM_FENCE);
        before[id] = now[id];
        now[id] = score;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[group * size + id] = best;
}
