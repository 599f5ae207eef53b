// Each work-item adds up as many values as its own number says. The values are in memory that no cache holds.
typedef struct { double energy, total, elastic, fission; } Point;
kernel void own_numbers(global const int* counts, global const int* isotopes, global const int* places, global const Point* points, global const double* energies, global double* sums, int rows, int length) {
    const int i = get_global_id(0);
    const double energy = energies[i];
    const int material = i * 7919 % 12, count = counts[material], row = (int)(energy * rows);
    double total = 0, elastic = 0, fission = 0;
    for (int k = 0; k < count; ++k) {
        const int isotope = isotopes[material * 34 + k], place = places[row * 68 + isotope];
        global const Point* low = &points[isotope * length + (place == length - 1 ? place - 1 : place)];
        const double part = (low[1].energy - energy) / (low[1].energy - low[0].energy);
        total += low[1].total - part * (low[1].total - low[0].total);
        elastic += low[1].elastic - part * (low[1].elastic - low[0].elastic);
        fission += low[1].fission - part * (low[1].fission - low[0].fission);
    }
    sums[i] = fmax(total, fmax(elastic, fission));
}
