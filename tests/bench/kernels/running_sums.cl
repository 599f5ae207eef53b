// The work-item's own sum of those before it, and sums up to each element that is not zero along a row of its own. With rows of whole pages, the places
// of all lanes have the same lower bits.
kernel void running_sums(global const float* in, global const float* before, global float* out, int length, int end) {
    const int item = get_global_id(0);
    float sum = 0;
    for (int i = 0; i < item; ++i)
        sum += before[i];
    for (int i = 0; i < length; ++i) {
        const float value = in[clamp(item * length + i, 0, end - 1)];
        sum += value;
        out[item * length + i] = value != 0 ? sum : 0;
    }
}
