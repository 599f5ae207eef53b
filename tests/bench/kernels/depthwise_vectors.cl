// A depthwise convolution of four channels side by side, as MNN and other libraries for networks store them. Four neighbours of a row for each work-item:
// in lanes each vector of four would be taken apart.
kernel void depthwise_vectors(global float* out, global const float* in, global const float* weights, int width, int height, int blocks, int taps) {
    const int x = get_global_id(0) % blocks * 4, channel = get_global_id(0) / blocks, y = get_global_id(1);
    float4 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (int ky = 0; ky < taps; ++ky) {
        const int row = y + ky - 1;
        if (row < 0 || row >= height) continue;
        const int at = (channel * height + row) * width + x - 1;
        for (int kx = 0; kx < taps; ++kx) {
            const float4 weight = vload4(channel * taps * taps + ky * taps + kx, weights);
            const float4 in0 = x + kx - 1 < 0 || x + kx - 1 >= width ? (float4)0 : vload4(at + kx, in);
            const float4 in1 = x + kx >= width ? (float4)0 : vload4(at + kx + 1, in);
            const float4 in2 = x + kx + 1 >= width ? (float4)0 : vload4(at + kx + 2, in);
            const float4 in3 = x + kx + 2 >= width ? (float4)0 : vload4(at + kx + 3, in);
            sum0 = mad(in0, weight, sum0);
            sum1 = mad(in1, weight, sum1);
            sum2 = mad(in2, weight, sum2);
            sum3 = mad(in3, weight, sum3);
        }
    }
    const int to = (channel * height + y) * width + x;
    vstore4(sum0, to, out);
    vstore4(sum1, to + 1, out);
    vstore4(sum2, to + 2, out);
    vstore4(sum3, to + 3, out);
}
