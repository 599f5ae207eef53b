// A tree walked with a private stack whose top is in a variable: a loop goes down to a leaf, another one takes the next part.
kernel void stack_tops(global const uint* in, global uint* out) {
    uint stack[32], height = 0, leaves = 0, top = in[get_global_id(0)];
    for (;;) {
        if (top < 3) {
            ++leaves;
            if (height == 0)
                break;
            top = stack[--height];
            continue;
        }
        const uint third = top / 3;
        if (top & 1) {
            stack[height++] = third;
            top = top - third - 1;
        } else
            top = third;
    }
    out[get_global_id(0)] = leaves;
}
