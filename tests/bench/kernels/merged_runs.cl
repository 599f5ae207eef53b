// Two runs of numbers become one: which one comes next cannot be foreseen, as in a merge.
kernel void merged_runs(global const int* in, global int* out, uint run) {
    uint x = get_global_id(0) * run * 2, place = x;
    const uint x_end = x + run;
    uint y = x_end;
    const uint y_end = y + run;
    while (x < x_end && y < y_end) {
        if ((in[x] ^ in[y]) & 64) {
            out[place] = in[y];
            ++y;
        } else {
            out[place] = in[x];
            ++x;
        }
        ++place;
    }
    while (x < x_end)
        out[place++] = in[x++];
    while (y < y_end)
        out[place++] = in[y++];
}
