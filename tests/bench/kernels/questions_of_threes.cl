// Counts the points of three shorts of which any coordinate is negative, and those of which all are, as tests of pixels against a range do. LLVM joins the
// three loaded numbers by one operation on the vector, which code generation puts together and takes apart again.
kernel void count_negative(global const short* points, int steps, global int* counts) {
    int item = get_global_id(0), items = get_global_size(0), count = 0;
    for (int step = 0; step < steps; ++step) {
        short3 point = vload3(step * items + item, points);
        count += any(point) + 2 * all(point);
    }
    counts[item] = count;
}
