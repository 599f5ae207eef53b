// A switch over a number of each work-item: nearly all arms have some lane.
kernel void op_per_item(global const int* ops, global const float* a, global const float* b, global float* c) {
    const int i = get_global_id(0);
    const float x = a[i], y = b[i];
    float r;
    switch (ops[i]) {
    case 0: r = x + y; break;
    case 1: r = x - y; break;
    case 2: r = x * y; break;
    case 3: r = x / y; break;
    case 4: r = fmin(x, y); break;
    case 5: r = fmax(x, y); break;
    case 6: r = sqrt(x); break;
    case 7: r = fabs(x - y); break;
    default: r = 0; break;
    }
    c[i] = r;
}
