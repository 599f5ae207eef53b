// One of many ways to blend two pictures, chosen by an argument, behind a guard: only the arm that was chosen may run, although the guard masks it.
float4 hue_of(float4 p) {
    const float high = fmax(p.x, fmax(p.y, p.z)), low = fmin(p.x, fmin(p.y, p.z)), delta = high - low;
    float4 r = (float4)(0.0f, 0.0f, high, p.w);
    if (delta > 1e-6f) {
        r.y = delta / high;
        if (high == p.x) r.x = (p.y - p.z) / delta;
        else if (high == p.y) r.x = 2.0f + (p.z - p.x) / delta;
        else r.x = 4.0f + (p.x - p.y) / delta;
        r.x = r.x < 0.0f ? r.x / 6.0f + 1.0f : r.x / 6.0f;
    }
    return r;
}

float4 color_of(float4 h) {
    const float at = 6.0f * (h.x - floor(h.x)), part = at - floor(at);
    const float p = h.z * (1.0f - h.y), q = h.z * (1.0f - h.y * part), t = h.z * (1.0f - h.y * (1.0f - part));
    const int side = (int)at;
    if (side == 0) return (float4)(h.z, t, p, h.w);
    if (side == 1) return (float4)(q, h.z, p, h.w);
    if (side == 2) return (float4)(p, h.z, t, h.w);
    if (side == 3) return (float4)(p, q, h.z, h.w);
    if (side == 4) return (float4)(t, p, h.z, h.w);
    return (float4)(h.z, p, q, h.w);
}

kernel void blend(global const float4* restrict below, global const float4* restrict above, global float4* restrict out,
                  int width, int height, int mode, float opacity) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const float4 a = below[y * width + x], b = above[y * width + x];
    float4 o, h = 0.0f, g;
    switch (mode & 15) {
    case 0: o = a * (1.0f - opacity) + fmax(a, b) * opacity; break;
    case 1: o = a * (1.0f - opacity) + fmin(a, b) * opacity; break;
    case 2: o = a * (1.0f - opacity) + a * b * opacity; break;
    case 3: h = hue_of(a); h.z = mix(h.z, hue_of(b).z, opacity); o = color_of(h); break;
    case 4: h = hue_of(a); h.y = mix(h.y, hue_of(b).y, opacity); o = color_of(h); break;
    case 5: g = hue_of(b); h = hue_of(a); h.x = fabs(h.x - g.x) > 0.5f ? g.x : mix(h.x, g.x, opacity); o = color_of(h); break;
    case 6:
        h = hue_of(a);
        g = hue_of(b);
        h.x = atan2(mix(sin(h.x), sin(g.x), opacity), mix(cos(h.x), cos(g.x), opacity));
        o = color_of(h);
        break;
    case 7: o = a / (b + 0.01f) * opacity + a * (1.0f - opacity); break;
    default: o = mix(a, b, opacity); break;
    }
    o.w = mode & 16 ? a.w : opacity;
    out[y * width + x] = o;
}
