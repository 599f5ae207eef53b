// A loop that is left by `break` out of a block with a variable of its own.
kernel void break_in_block(global int* out, int w, int h, float cr, float ci) {
    const int x = get_global_id(0), y = get_global_id(1);
    float2 z = (float2)(3.0f * (x - w / 2) / w, 3.0f * (y - h / 2) / h);
    int k = 0;
    for (; k < 200; ++k) {
        const float2 square = z * z;
        if (square.x + square.y > 4.0f)
            break;
        z = (float2)(square.x - square.y + cr, 2.0f * z.x * z.y + ci);
    }
    out[y * w + x] = k;
}
