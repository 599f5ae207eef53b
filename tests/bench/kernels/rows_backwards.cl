// Elements exchanged with those at the other end: an index of 32 bits that counts down.
kernel void rows_backwards(global int* a, uint size) {
    const uint i = get_global_id(0);
    const uint j = size - i - 1;
    const int t = a[i];
    a[i] = a[j] + i;
    a[j] = t;
}
