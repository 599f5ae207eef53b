// A median of 5 x 5 in an array whose used part shrinks from row to row (median_of_nine: in one row).
#define ORDER(a, b) { const float least = min(a, b); b = max(a, b); a = least; }

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void median_of_25(global const float* in, global float* out, int width, int columns) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= columns) return;
    float v[15];
    for (int i = 0; i < 15; i++) v[i] = in[(y + i / 5) * width + x + i % 5];
    for (int i = 0; i < 14; i++) ORDER(v[i], v[14])
    for (int i = 1; i < 14; i++) ORDER(v[0], v[i])
    int last = 14;
    for (int row = 3; row < 5; row++)
        for (int j = 0; j < 5; j++) {
            v[0] = in[(y + row) * width + x + j];
            last--;
            for (int i = 0; i < (last + 1) / 2; i++) ORDER(v[i], v[last - i])
            for (int i = 1; i <= last / 2; i++) ORDER(v[0], v[i])
            for (int i = last - 1; i >= (last + 1) / 2; i--) ORDER(v[i], v[last])
        }
    out[y * width + x] = max(min(v[1], v[2]), min(max(v[1], v[2]), v[3]));
}
