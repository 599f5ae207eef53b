// A convolution of 1 x 1 over channels in blocks of four. Neighbouring columns may be in another block of channels; rows are neighbours for certain.
kernel void blocks_of_channels(int columns, int rows, global const float4* in, global const float4* weights,
                               global float4* out, int blocks, int height, int width) {
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    const int c = column / width, x = column % width, image = row / height, y = row % height;
    const int first = (image * blocks * height + y) * width + x;
    float4 sum = 0;
    for (int k = 0; k < blocks; ++k) {
        const float4 pixel = in[first + k * height * width];
        global const float4* const w = weights + k * 4 * blocks + c;
        sum = mad(pixel.x, w[0], sum);
        sum = mad(pixel.y, w[blocks], sum);
        sum = mad(pixel.z, w[2 * blocks], sum);
        sum = mad(pixel.w, w[3 * blocks], sum);
    }
    out[((image * blocks + c) * height + y) * width + x] = clamp(sum, (float4)0, (float4)6);
}
