// Lengths of differences to a point's neighbours, where there are neighbours, as a cloth of springs or a flock does. `length` must not compute what
// only enormous and tiny vectors need.
kernel void guarded_lengths(global const float4* points, global float4* forces, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    float4 point = points[y * width + x], force = 0;
    for (int k = 0; k < 9; ++k) {
        int nx = x + k % 3 - 1, ny = y + k / 3 - 1;
        if (k != 4 && nx >= 0 && nx < width && ny >= 0 && ny < height) {
            float4 apart = points[ny * width + nx] - point;
            force += apart * (1 - length(apart)) + normalize(apart);
        }
    }
    forces[y * width + x] = force;
}
