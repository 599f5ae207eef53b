// A stage of a Fourier transformation: pairs of floats at places that each work-item computes.
kernel void computed_places(global const float2* in, global float2* out, int p, int n) {
    const int i = get_global_id(0), k = i & (p - 1), j = ((i - k) << 1) + k;
    const float angle = -3.14159265f * k / p;
    const float2 w = (float2)(native_cos(angle), native_sin(angle)), x = in[i], y = in[i + n / 2];
    const float2 t = (float2)(y.x * w.x - y.y * w.y, y.x * w.y + y.y * w.x);
    out[j] = x + t;
    out[j + p] = x - t;
}
