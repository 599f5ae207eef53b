// Sums of the bytes around a place of each work-item in an image, plain and weighted by the distance, as the moments that give a corner its direction.
kernel void sums_around_places(global const uchar* image, int pitch, global const int2* places, global const int* reach,
                               int rows, global int2* out) {
    const int2 place = places[get_global_id(0)];
    global const uchar* const centre = image + ((place.y & 1023) + rows) * pitch + (place.x & 1023) + rows;
    int across = 0, down = 0;
    for (int row = 1; row < rows; ++row) {
        int difference = 0;
        for (int i = -reach[row]; i <= reach[row]; ++i) {
            const int below = centre[row * pitch + i], above = centre[i - row * pitch];
            difference += below - above;
            across += i * (below + above);
        }
        down += row * difference;
    }
    out[get_global_id(0)] = (int2)(across, down);
}
