// Forces between bodies in doubles: a reciprocal root for each pair.
kernel void double_bodies(global const double4* bodies, global double4* forces, int count) {
    size_t id = get_global_id(0);
    double4 body = bodies[id];
    double x = 0, y = 0, z = 0;
    for (int j = 0; j < count; ++j) {
        double4 other = bodies[j];
        double dx = other.x - body.x, dy = other.y - body.y, dz = other.z - body.z;
        double r = rsqrt(dx * dx + dy * dy + dz * dz + 1e-3);
        double scale = other.w * r * r * r;
        x += scale * dx;
        y += scale * dy;
        z += scale * dz;
    }
    forces[id] = (double4)(x, y, z, 0);
}
