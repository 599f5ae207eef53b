// Divisions whose operands all work-items share, beside little work of each: every sphere's slopes are divided for each vector of work-items.
kernel void shared_divisions(global const float4* restrict spheres, int count, global const float* restrict xs,
                             global const float* restrict ys, global float* restrict out) {
    const int id = get_global_id(0);
    const float x = xs[id], y = ys[id];
    float sum = 0;
    for (int i = 0; i < count; ++i) {
        const float4 sphere = spheres[i];
        const float radius = sphere.z + 0.25f, reach = sphere.w < 0.5f ? 1.5f : 2.5f;
        const float dx = x - sphere.x, dy = y - sphere.y;
        const float distance = sqrt(dx * dx + dy * dy), outside = distance - radius;
        sum += (1 - distance / radius) * (outside < 0 ? 38.0f : 0.0f);
        sum += sphere.w * (outside < 0 ? 1.0f : 1 - outside * (1 / reach)) * (outside < reach ? 1.0f : 0.0f);
    }
    out[id] = sum;
}
