// A search that ends early: the longest match within the bytes before, as in compression.
kernel void longest_match(global const uchar* bytes, global ushort* best, int count, int window) {
    const int at = get_global_id(0);
    int longest = 0, distance = 0;
    for (int offset = 1; offset <= window && offset <= at; ++offset) {
        int length = 0;
        while (length < 16 && at + length < count && bytes[at + length] == bytes[at + length - offset])
            ++length;
        if (length > longest) {
            longest = length;
            distance = offset;
        }
    }
    best[at] = longest << 8 | distance;
}
