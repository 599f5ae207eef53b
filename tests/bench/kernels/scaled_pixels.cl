// Three colours of a pixel are scaled one after the other, each loaded behind the store of the one before, where the pixel is finite.
kernel void scaled_pixels(global float* pixels, float scale, int count) {
    const size_t i = get_global_id(0);
    if (i >= count || isinf(pixels[3 * i])) return;
    global float* pixel = pixels + 3 * i;
    pixel[0] *= scale;
    pixel[1] *= scale;
    pixel[2] *= scale;
}
