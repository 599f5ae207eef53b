// Each work-item compares a colour with those that it keeps in order of their weights. One that is near moves towards it and up in the order. Only the colours are
// vectors: most of the code is numbers, and branches of each work-item's own.
kernel void kept_colors(global const float4* in, global const uchar* counts, global float* weights,
                        global const float* spreads, global float4* kept, global float* out, int step, float enough,
                        float limit) {
    const int id = get_global_id(0);
    const float4 color = in[id];
    int count = counts[id];
    float sum = 0, result = 1;
    bool known = false;
    int i = 0;
    for (; i < count; ++i) {
        int at = i * step + id;
        float weight = weights[at] * 0.9f;
        const float spread = spreads[at];
        const float4 mean = kept[at], distance = mean - color;
        const float squared = dot(distance, distance);
        if (sum < enough && squared < spread)
            result = 0;
        if (squared < limit * spread) {
            known = true;
            weight += 0.1f;
            for (int before = i; before > 0; --before) {
                const int next = at - step;
                if (weight < weights[next])
                    break;
                weights[at] = weights[next];
                kept[at] = kept[next];
                at = next;
            }
            kept[at] = mean - distance * (0.1f / weight);
            weights[at] = weight;
            sum += weight;
            ++i;
            break;
        }
        if (weight < 0.01f)
            weight = 0;
        weights[at] = weight;
        sum += weight;
    }
    if (result > 0) {
        float total = 0;
        for (int i = 0; i < count; ++i) {
            const int at = i * step + id;
            const float4 mean = kept[at];
            const float along = dot(color, mean), length = dot(mean, mean);
            if (length == 0)
                break;
            if (along <= length && along >= 0.5f * length) {
                const float part = along / length;
                const float4 rest = part * mean - color;
                if (dot(rest, rest) < limit * spreads[at] * part * part) {
                    result = 0.5f;
                    break;
                }
            }
            total += weights[at];
            if (total > enough)
                break;
        }
    }
    out[id] = result + (known ? 2 : 0);
}
