// Sums of waves: the sine and the cosine of one angle.
kernel void sine_and_cosine(global const float* at, global const float4* waves, global float2* out, int count) {
    const int g = get_global_id(0);
    float real = 0, imaginary = 0;
    for (int k = 0; k < count; ++k) {
        const float angle = 6.2831853f * (waves[k].x * at[g] + waves[k].y);
        real += waves[k].z * cos(angle);
        imaginary += waves[k].z * sin(angle);
    }
    out[g] = (float2)(real, imaginary);
}
