// A step of heat in a layer. At the ends of rows and columns, an element is its own neighbour.
kernel void ends_of_rows(global const float* from, global float* to, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1), c = y * width + x;
    int w = x == 0 ? c : c - 1, e = x == width - 1 ? c : c + 1;
    int n = y == 0 ? c : c - width, s = y == height - 1 ? c : c + width;
    to[c] = 0.6f * from[c] + 0.1f * (from[w] + from[e] + from[n] + from[s]);
}
