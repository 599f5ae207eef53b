// A radix sort of each work-group, with prefix sums in one local array.
kernel void split_by_bits(global const uint* in, global uint* out) {
    local uint values[256], sums[256];
    const int id = get_local_id(0), size = 256;
    values[id] = in[get_global_id(0)];
    for (int bit = 0; bit < 8; ++bit) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint value = values[id], is_zero = !(value >> bit & 1);
        sums[id] = is_zero;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = 1; distance < size; distance <<= 1) {
            uint sum = sums[id];
            if (id >= distance) sum += sums[id - distance];
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[id] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const uint before = sums[id] - is_zero;
        values[is_zero ? before : id - before + sums[size - 1]] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = values[id];
}
