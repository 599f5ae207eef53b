// Few pixels vote for many lines, as in a Hough transform: atomic additions of the few lanes that are active, in a loop.
kernel void sparse_votes(global const uchar* edges, global int* votes, global const float* cosines, global const float* sines, int width, int distances) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (edges[y * width + x] < 250)
        return;
    for (int angle = 0; angle < 90; ++angle) {
        const int distance = (int)rint(x * cosines[angle] + y * sines[angle]) + distances / 2;
        atomic_inc(&votes[angle * distances + distance]);
    }
}
