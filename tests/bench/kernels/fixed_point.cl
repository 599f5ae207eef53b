// Numbers with 16 bits behind the point: each step of the chain has products of 64 bits, cut to 32.
int mulq(int a, int b) { return (int)(((long)a * b) >> 16); }
int divq(int a, int b) { return (int)(((long)a << 16) / b); }
kernel void damp(global const int* x, global const int* k, global int* out, int steps) {
    int i = get_global_id(0);
    int p = x[i], v = 0;
    for (int s = 0; s < steps; s++) {
        int f = -mulq(k[i], p);
        v = mulq(v, 64880) + mulq(f, 655);
        p += mulq(v, 655);
    }
    out[i] = divq(p, k[i] | 1);
}
