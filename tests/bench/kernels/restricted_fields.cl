// Fields that a work-item stores and reads again, as in CloverLeaf's advection. They do not overlap, because the arguments are `restrict`.
#define AT(x, y) ((y) * 325 + (x))

kernel void restricted_fields(global double* restrict density, global double* restrict energy, global const double* restrict flux,
                              global const double* restrict volume, global double* restrict mass_before, global double* restrict mass_after,
                              global double* restrict volume_after, global double* restrict energy_after) {
    const int y = get_global_id(1);
    const int x = get_global_id(0);
    if (x >= 2 && x <= 321 && y >= 2 && y <= 321) {
        mass_before[AT(x, y)] = density[AT(x, y)] * volume[AT(x, y)];
        mass_after[AT(x, y)] = mass_before[AT(x, y)] + flux[AT(x, y)] - flux[AT(x + 1, y)];
        energy_after[AT(x, y)] = (energy[AT(x, y)] * mass_before[AT(x, y)] + flux[AT(x, y)] - flux[AT(x + 1, y)]) / mass_after[AT(x, y)];
        volume_after[AT(x, y)] = volume[AT(x, y)] + flux[AT(x, y)] - flux[AT(x + 1, y)];
        density[AT(x, y)] = mass_after[AT(x, y)] / volume_after[AT(x, y)];
        energy[AT(x, y)] = energy_after[AT(x, y)];
    }
}
