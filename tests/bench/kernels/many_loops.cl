// Sixty loops that follow each other: the time to compile them should be linear in their number.
#define LOOP(k) \
    for (int i = 0; i < n; ++i) \
        sum = sum * 0.5f + a[(id + i * k) & 65535];
#define LOOPS(k) LOOP(k + 1) LOOP(k + 3) LOOP(k + 5) LOOP(k + 7) LOOP(k + 9) LOOP(k + 11)

kernel void many_loops(global const float* a, global float* o, int n) {
    int id = get_global_id(0);
    float sum = 0;
    LOOPS(0) LOOPS(20) LOOPS(40) LOOPS(60) LOOPS(80) LOOPS(100) LOOPS(120) LOOPS(140) LOOPS(160) LOOPS(180)
    o[id] = sum;
}
