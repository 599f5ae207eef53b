// A division by a constant in a loop that work-items leave one by one.
kernel void binary_search(global const float* sorted, global const float* values, global int* places, int count) {
    const float value = values[get_global_id(0)];
    int low = 0, high = count - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (sorted[middle] > value)
            high = middle;
        else
            low = middle;
    }
    places[get_global_id(0)] = low;
}
