// Pairs of shapes: each kind of pair has an arm of its own, which ends with `return`. Most pairs have none.
kernel void returned_arms(global const int2* pairs, global const int* kinds, global const float4* places, global float4* contacts, int count) {
    const int i = get_global_id(0);
    if (i >= count) return;
    const int2 pair = pairs[i];
    const int one = kinds[pair.x], other = kinds[pair.y];
    if (one == 1 && other == 2) {
        float4 sum = 0;
        for (int k = 0; k < 8; ++k) {
            const float4 apart = places[(pair.x + k) & 4095] - places[pair.y];
            if (dot(apart, apart) < 1) sum += apart / (1 + length(apart));
        }
        contacts[i] = sum;
        return;
    }
    if (one == 2 && other == 1) {
        float4 nearest = places[pair.x];
        for (int k = 1; k < 8; ++k) {
            const float4 here = places[(pair.y + k) & 4095];
            if (distance(here, places[pair.x]) < distance(nearest, places[pair.y])) nearest = here;
        }
        contacts[i] = normalize(nearest);
        return;
    }
    if (one == 1 && other == 1) {
        const float4 apart = places[pair.x] - places[pair.y];
        const float far = length(apart);
        if (far < 2) contacts[i] = far > 1e-5f ? apart / far : (float4)(1, 0, 0, 0);
        return;
    }
}
