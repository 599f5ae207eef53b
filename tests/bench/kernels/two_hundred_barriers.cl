// A hundred rounds in which the work-items of a group exchange numbers: 200 loops over work-items, one after the other.
#define ROUND(k)                          \
    barrier(CLK_LOCAL_MEM_FENCE);         \
    sum += exchanged[(own + (k)) & 63] * (k); \
    barrier(CLK_LOCAL_MEM_FENCE);         \
    exchanged[own] = sum ^ (k);
#define ROUNDS5(k) ROUND(k) ROUND(k + 1) ROUND(k + 2) ROUND(k + 3) ROUND(k + 4)
#define ROUNDS25(k) ROUNDS5(k) ROUNDS5(k + 5) ROUNDS5(k + 10) ROUNDS5(k + 15) ROUNDS5(k + 20)

kernel void two_hundred_barriers(global const uint* in, global uint* out) {
    local uint exchanged[64];
    const uint own = get_local_id(0);
    uint sum = in[get_global_id(0)];
    exchanged[own] = sum;
    ROUNDS25(0)
    ROUNDS25(25)
    ROUNDS25(50)
    ROUNDS25(75)
    out[get_global_id(0)] = sum;
}
