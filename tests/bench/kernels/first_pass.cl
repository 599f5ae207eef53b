// The first pass of a transformation: the later ones have a larger p, and turn their numbers by an angle.
kernel void first_pass(global const float2* in, global float2* out, uint p, uint threads) {
    const size_t i = get_global_id(0);
    if (i >= threads)
        return;
    const size_t k = i % p;
    float2 a = in[i], b = in[i + threads], c = in[i + 2 * threads], d = in[i + 3 * threads];
    if (p != 1) {
        const float angle = -1.5707963f * k / p, x = native_cos(angle), y = native_sin(angle);
        b = (float2)(b.x * x - b.y * y, b.y * x + b.x * y);
        d = (float2)(d.x * x - d.y * y, d.y * x + d.x * y);
    }
    const float2 e = a + c, f = a - c, g = b + d, h = (float2)(b.y - d.y, d.x - b.x);
    out += k + (i - k) * 4;
    out[0] = e + g;
    out[p] = f + h;
    out[2 * p] = e - g;
    out[3 * p] = f - h;
}
