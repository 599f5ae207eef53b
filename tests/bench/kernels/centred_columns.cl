// A filter along columns, reflected at the edges. Its centre depends on whether its length, an argument, is odd, which is found out behind a guard.
kernel void centred_columns(global const float* in, global float* out, global const float* factors, int length, int width, int height) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x < width && y < height) {
        int centre, left, right;
        if (length & 1) {
            centre = length / 2;
            left = centre;
            right = centre;
        } else {
            centre = length / 2 - 1;
            left = centre;
            right = centre + 1;
        }
        const int first = centre - y, last = height - 1 - y + centre;
        float sum = 0;
        for (int i = 0; i <= left + right; i++) {
            int row = y - centre + i;
            if (i < first)
                row = first - i - 1;
            if (i > last)
                row = height - (i - last);
            sum += in[row * width + x] * factors[length - 1 - i];
        }
        out[y * width + x] = sum;
    }
}
