// Members of a structure in a buffer are the sums of an inner loop, which reads structures of the same type.
typedef struct {
    float x, y, z, w;
} Particle;

kernel void particle_sums(global Particle* out, global const Particle* in, int n) {
    const int i = get_global_id(0);
    for (int k = 0; k < n; ++k) {
        const float s = in[k].w * in[k].x;
        out[i].x += s * in[k].y;
        out[i].y += s * in[k].z;
        out[i].z += s * s;
    }
}
