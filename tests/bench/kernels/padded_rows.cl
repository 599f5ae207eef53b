// Filters of rows of four channels with padding: each tap compares its place with 0 and with the width, both of which are arguments. Four neighbours of a row
// for each work-item, as in depthwise_vectors.
kernel void padded_rows(global const float4* in, global const float4* taps, global float4* out, int width, int count,
                        int padding, int blocks) {
    const int left = get_global_id(0) % blocks * 4, channel = get_global_id(0) / blocks;
    const int row = (get_global_id(1) + channel * get_global_size(1)) * width, x = left - padding;
    float4 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (int tap = 0; tap < count; ++tap) {
        const int place = x + tap;
        const float4 weight = taps[channel * count + tap];
        sum0 = mad(place < 0 || place >= width ? (float4)0 : in[row + place], weight, sum0);
        sum1 = mad(place + 1 < 0 || place + 1 >= width ? (float4)0 : in[row + place + 1], weight, sum1);
        sum2 = mad(place + 2 < 0 || place + 2 >= width ? (float4)0 : in[row + place + 2], weight, sum2);
        sum3 = mad(place + 3 < 0 || place + 3 >= width ? (float4)0 : in[row + place + 3], weight, sum3);
    }
    const int first = row + left;
    out[first] = sum0;
    out[first + 1] = sum1;
    out[first + 2] = sum2;
    out[first + 3] = sum3;
}
