// Smooth escape times of the Mandelbrot set for the rows of one tile.
kernel void escape(global float* times, uint first_row, uint width, uint height, float2 centre, float scale,
                   uint iterations_max) {
    const uint x = get_global_id(0), y = get_global_id(1);
    const float2 c = centre + scale * (float2)((x + 0.5f) / width - 0.5f,
                                               ((first_row + y + 0.5f) / height - 0.5f) * height / width);
    float2 z = 0.0f;
    uint i = 0;
    while (i < iterations_max && dot(z, z) < 256.0f) {
        z = (float2)(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + c;
        ++i;
    }
    times[y * width + x] = i == iterations_max ? -1.0f : i + 1.0f - log2(0.5f * log2(dot(z, z)));
}

float time_at(global const float* times, int x, int y, int width, int rows) {
    return times[clamp(y, 0, rows - 1) * width + clamp(x, 0, width - 1)];
}

// Colours of one tile: escape times are drawn as the heights of a landscape with light from the upper left. `times` begins `above`
// rows before the tile, so that slopes at the tile's edges use the rows of its neighbours.
kernel void shade(global const float* times, uint above, uint rows_of_times, global uchar4* colours, uint width) {
    const int x = get_global_id(0), row = get_global_id(1), y = row + above;
    const float time = time_at(times, x, y, width, rows_of_times);
    float3 colour = (float3)(0.02f, 0.02f, 0.05f);
    if (time >= 0.0f) {
        const float2 slope =
            (float2)(time_at(times, x + 1, y, width, rows_of_times) - time_at(times, x - 1, y, width, rows_of_times),
                     time_at(times, x, y + 1, width, rows_of_times) - time_at(times, x, y - 1, width, rows_of_times));
        const float light = 0.55f + 0.45f * dot(normalize((float3)(slope, 0.8f)), normalize((float3)(-1, -1, 1.2f)));
        const float phase = log(1.0f + time) * 1.7f;
        colour = light * (0.5f + 0.5f * cos(phase + (float3)(2.9f, 2.2f, 1.4f)));
    }
    colours[row * width + x] = (uchar4)(convert_uchar3_sat(255.0f * sqrt(colour)), 255);
}
