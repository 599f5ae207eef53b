// The five nearest points, kept in order in private arrays. Few points displace one.
kernel void nearest_values(global const float4* queries, global const float4* points, global int* nearest, int count) {
    const int i = get_global_id(0);
    float distance[5];
    int index[5];
    for (int j = 0; j < 5; ++j) {
        distance[j] = 1e30f;
        index[j] = -1;
    }
    const float4 own = queries[i];
    for (int j = 0; j < count; ++j) {
        const float4 apart = points[j] - own;
        const float here = dot(apart, apart);
        if (here < distance[4]) {
            int place = 4;
            for (; place > 0 && distance[place - 1] > here; --place) {
                distance[place] = distance[place - 1];
                index[place] = index[place - 1];
            }
            distance[place] = here;
            index[place] = j;
        }
    }
    for (int j = 0; j < 5; ++j)
        nearest[i * 5 + j] = index[j];
}
