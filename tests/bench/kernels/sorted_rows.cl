// A step of a bitonic sort along rows of 4096 elements, as PyOpenCL writes it: LLVM makes the row's beginning a part of the id that was shifted up.
#define STEP(a, b)                         \
    {                                      \
        const float least = fmin(a, b);    \
        b = fmax(a, b);                    \
        a = least;                         \
    }

kernel void sorted_rows(global float* data) {
    const int t = get_global_id(0) % 1024, row = get_global_id(0) / 1024;
    data += t + row * 4096;
    float a = data[0], b = data[1024], c = data[2048], d = data[3072];
    STEP(a, c)
    STEP(b, d)
    STEP(a, b)
    STEP(c, d)
    data[0] = a;
    data[1024] = b;
    data[2048] = c;
    data[3072] = d;
}
