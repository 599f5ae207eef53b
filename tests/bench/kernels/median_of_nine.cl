// A median as in ArrayFire's filter: the part of the private array that still matters shrinks with each element that is added.
#define ORDER(a, b) { const float least = min(a, b); b = max(a, b); a = least; }

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void median_of_nine(global const float* in, global float* out, int width, int columns) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= columns) return;
    float v[6];
    for (int i = 0; i < 6; i++) v[i] = in[(y + i / 3) * width + x + i % 3];
    int last = 5;
    for (int row = 2; row < 3; row++)
        for (int j = 0; j < 3; j++) {
            v[0] = in[(y + row) * width + x + j];
            last--;
            for (int i = 0; i < (last + 1) / 2; i++) ORDER(v[i], v[last - i])
            for (int i = 1; i <= last / 2; i++) ORDER(v[0], v[i])
            for (int i = last - 1; i >= (last + 1) / 2; i--) ORDER(v[i], v[last])
        }
    out[y * width + x] = v[1];
}
