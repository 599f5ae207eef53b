// Work-items return from a loop that all of them enter (decision 287).
kernel void first_match(global const int* keys, global const int* wanted, global int* places, int n) {
    const int i = get_global_id(0);
    for (int j = 0; j < n; ++j)
        if (keys[j] == wanted[i]) {
            places[i] = j;
            return;
        }
    places[i] = -1;
}
