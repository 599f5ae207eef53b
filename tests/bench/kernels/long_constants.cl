// Quotients and remainders of 64-bit numbers by constants.
kernel void long_constants(global const long* in, global long* out) {
    const size_t i = get_global_id(0);
    const long day = in[i] / 86400, second = in[i] % 86400;
    const ulong mixed = (ulong)in[i] * 6364136223846793005ul % 1000000007ul;
    out[i] = day * 7 + second + (long)(mixed / 641);
}
