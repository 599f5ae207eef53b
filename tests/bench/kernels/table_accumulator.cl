// Sums in a buffer beside `exp`, which reads a table at places that depend on data: particles that attract others, with those in local memory.
typedef struct {
    float x, y, z, w;
} Particle;

kernel void attract(global Particle* forces, global const Particle* particles, int rounds) {
    local Particle tile[128];
    const int i = get_local_id(0), first = get_group_id(0) * 128;
    tile[i] = particles[first + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int round = 0; round < rounds; ++round) {
        if (i < 100)
            for (int k = 0; k < 100; ++k) {
                const float near = exp(-tile[i].w - tile[k].w + tile[i].x * tile[k].x);
                forces[first + i].w += near;
                forces[first + i].x += near * (tile[i].x - tile[k].x);
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
