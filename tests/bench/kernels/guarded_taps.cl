// A filter that begins before the signal: each iteration compares a place that follows from the id and the counter.
kernel void guarded_taps(global const float* in, constant float* taps, global float* out, int count) {
    const int id = get_global_id(0);
    float sum = 0;
    for (int tap = 0; tap < count; ++tap) {
        const int place = id - tap;
        if (place >= 0)
            sum += taps[tap] * in[place];
    }
    out[id] = sum;
}
