// Pixels of as many channels as an argument says, with indices without a sign: the mean of the neighbours' brightness.
float brightness(global const float* in, uint place) {
    return 0.2126f * in[place] + 0.7152f * in[place + 1] + 0.0722f * in[place + 2];
}

kernel void local_contrast(global const float* in, global float* out, uint width, uint channels, uint height) {
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint place = width * channels * y + x * channels;
    const float own = brightness(in, place);
    float mean = own;
    if (x != 0 && y != 0 && x != width - 1 && y != height - 1) {
        const uint above = width * channels * (y - 1) + x * channels, below = width * channels * (y + 1) + x * channels;
        mean = (brightness(in, above - channels) + brightness(in, above) + brightness(in, above + channels) +
                brightness(in, place - channels) + brightness(in, place + channels) + brightness(in, below - channels) +
                brightness(in, below) + brightness(in, below + channels)) / 8;
    }
    const float factor = own / (own + mean + 0.1f);
    for (uint c = 0; c < 3; ++c)
        out[place + c] = in[place + c] * factor;
}
