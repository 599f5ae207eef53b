// Samples of a film are added to its pixels, where they have a weight: structures of three floats, and of four of which one decides, under a mask.
kernel void film_samples(global const float* samples, global float* film, int pixels) {
    const size_t i = get_global_id(0);
    if (i >= pixels) return;
    const float weight = samples[4 * i + 3];
    if (weight > 0.0f) {
        const float scale = 1.0f / weight;
        const float r = samples[4 * i] * scale, g = samples[4 * i + 1] * scale, b = samples[4 * i + 2] * scale;
        const float red = film[3 * i], green = film[3 * i + 1], blue = film[3 * i + 2];
        film[3 * i] = isinf(red) ? r : red + r;
        film[3 * i + 1] = isinf(green) ? g : green + g;
        film[3 * i + 2] = isinf(blue) ? b : blue + b;
    }
}
