// Forces between pairs of particles, as molecular dynamics computes them. Places are float4, whose elements the kernel uses one by one: its own
// vectors save almost nothing, and lanes are faster.
kernel void neighbour_pairs(global float* forces, global const float4* places, global const float4* kinds, global const float* factors,
                            global const int* neighbours, int count, int rows) {
    const int id = get_global_id(0);
    const float4 own = places[id];
    float x = 0, y = 0, z = 0;
    for (int row = 0; row < rows; ++row) {
        const int neighbour = neighbours[row * count + id];
        const float factor = factors[neighbour >> 30 & 3];
        const float4 other = places[neighbour & 0x3fffffff];
        const int kind = (int)own.w * 4 + (int)other.w;
        const float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
        const float squared = dx * dx + dy * dy + dz * dz;
        if (squared < kinds[kind].z) {
            const float inverse = 1 / squared, power = inverse * inverse * inverse;
            const float force = factor * inverse * power * (kinds[kind].x * power - kinds[kind].y);
            x += dx * force;
            y += dy * force;
            z += dz * force;
        }
    }
    forces[3 * id] = x;
    forces[3 * id + 1] = y;
    forces[3 * id + 2] = z;
}
