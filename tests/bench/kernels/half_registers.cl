// Two chains of vectors that fill half of a register.
#define STEP a = (3.55f - a * 0.35f) * a; b = (3.55f - b * 0.35f) * b;
kernel void half_registers(global float* data, int n) {
    float s = data[get_global_id(0)];
    float8 a = s, b = s + 0.125f;
    for (int i = 0; i < n; ++i) {
        STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP
    }
    a += b;
    data[get_global_id(0)] = a.s0 + a.s1 + a.s2 + a.s3 + a.s4 + a.s5 + a.s6 + a.s7;
}
