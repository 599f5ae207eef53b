// Concentrations of 20 substances: each work-item scales one element of each row, adds them up, and divides each by the sum in a loop with fmax.
// The rows are on pages of their own, so several vectors of lanes should be in flight.
#define ROWS 20
kernel void floored_rows(global const double* in, global double* out, double floor) {
    size_t id = get_global_id(0);
    double sum = 0;
    for (int k = 0; k < ROWS; ++k) {
        double x = in[k * 4096 + id] * 0.25;
        out[k * 4096 + id] = x;
        sum += x;
    }
    double scale = 1 / sum;
    for (int k = 0; k < ROWS; ++k)
        out[k * 4096 + id] = fmax(out[k * 4096 + id], floor) * scale;
}
