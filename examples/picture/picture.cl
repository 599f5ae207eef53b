// Spheres over a plane, some of which are mirrors. `pixels` begins with row `first_row` of the picture.

#define sphere_count 9

float4 sphere(int i) {
    if (i == 0)
        return (float4)(0.0f, 1.0f, 0.0f, 1.0f);
    const float angle = 0.785398f * i;
    return (float4)(2.2f * native_cos(angle), 0.45f, 2.2f * native_sin(angle), 0.45f);
}

// The distance to the nearest sphere, and which one it is; -1 for none.
float nearest(float3 from, float3 direction, int* which) {
    float best = 1e9f;
    *which = -1;
    for (int i = 0; i < sphere_count; ++i) {
        const float4 s = sphere(i);
        const float3 to = s.xyz - from;
        const float along = dot(to, direction);
        const float inside = along * along - dot(to, to) + s.w * s.w;
        if (inside <= 0.0f)
            continue;
        const float distance = along - sqrt(inside);
        if (distance > 1e-3f && distance < best) {
            best = distance;
            *which = i;
        }
    }
    return best;
}

float3 sky(float3 direction) {
    return mix((float3)(0.85f, 0.88f, 0.95f), (float3)(0.25f, 0.42f, 0.75f), clamp(direction.y, 0.0f, 1.0f));
}

float3 colour_of(int which) {
    const float angle = 0.785398f * which;
    return 0.5f + 0.4f * (float3)(cos(angle), cos(angle + 2.1f), cos(angle + 4.2f));
}

float3 trace(float3 from, float3 direction) {
    const float3 light = normalize((float3)(-0.6f, 1.0f, -0.5f));
    float3 colour = 0.0f;
    float share = 1.0f;
    for (int bounce = 0; bounce < 4; ++bounce) {
        int which = -1;
        float distance = nearest(from, direction, &which);
        const float to_plane = direction.y < -1e-4f ? -from.y / direction.y : 1e9f;
        if (which < 0 && to_plane >= 1e9f)
            return colour + share * sky(direction);
        const bool is_plane = to_plane < distance;
        distance = min(distance, to_plane);
        const float3 point = from + distance * direction;
        float3 normal = (float3)(0.0f, 1.0f, 0.0f);
        float3 own = 0.0f;
        float mirror = 0.15f;
        if (is_plane) {
            const bool is_dark = ((int)floor(point.x) + (int)floor(point.z)) & 1;
            own = is_dark ? (float3)(0.12f) : (float3)(0.8f);
            own = mix(own, sky(direction), clamp(distance * 0.02f, 0.0f, 1.0f));
        } else {
            const float4 s = sphere(which);
            normal = (point - s.xyz) / s.w;
            own = colour_of(which);
            mirror = which == 0 ? 0.85f : 0.2f;
        }
        int shadow = -1;
        nearest(point + 1e-3f * normal, light, &shadow);
        const float lit = shadow < 0 ? max(dot(normal, light), 0.0f) : 0.0f;
        colour += share * (1.0f - mirror) * own * (0.25f + 0.75f * lit);
        share *= mirror;
        from = point + 1e-3f * normal;
        direction -= 2.0f * dot(direction, normal) * normal;
    }
    return colour;
}

kernel void render(global uchar4* pixels, uint first_row, uint width, uint height) {
    const uint x = get_global_id(0), row = get_global_id(1), y = first_row + row;
    const float3 eye = (float3)(0.0f, 2.2f, -6.0f);
    const float3 forward = normalize((float3)(0.0f, -0.27f, 1.0f));
    const float3 up = normalize((float3)(0.0f, 1.0f, 0.27f));
    const float2 at = ((float2)(x + 0.5f, height - y - 0.5f) - 0.5f * (float2)(width, height)) / height;
    const float3 direction = normalize(forward + at.x * (float3)(1.0f, 0.0f, 0.0f) + at.y * up);
    const float3 colour = trace(eye, direction);
    pixels[row * width + x] = (uchar4)(convert_uchar3_sat_rte(255.0f * sqrt(colour)), 255);
}
