// A program of a few operations that all work-items interpret: its branches are the same for all lanes.
kernel void shared_interpreter(global const uchar* program, global const uint* in, global uint* out, int length) {
    const int i = get_global_id(0);
    uint a = in[i], b = i;
    for (int k = 0; k < length; ++k)
        switch (program[k]) {
        case 0: a += b; break;
        case 1: a ^= b >> 3; break;
        case 2: b = b * 5 + 1; break;
        case 3: b = max(a, b) - min(a, b); break;
        default: a = a << 7 | a >> 25;
        }
    out[i] = a ^ b;
}
