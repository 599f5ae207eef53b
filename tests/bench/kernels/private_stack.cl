// A tree walked with a private stack, whose height differs between work-items.
kernel void private_stack(global const uint* in, global uint* out) {
    uint stack[32], height = 1, leaves = 0;
    stack[0] = in[get_global_id(0)];
    while (height > 0) {
        const uint value = stack[--height];
        if (value < 3) {
            ++leaves;
            continue;
        }
        stack[height++] = value / 3;
        if (value & 1)
            stack[height++] = value - value / 3 - 1;
    }
    out[get_global_id(0)] = leaves;
}
