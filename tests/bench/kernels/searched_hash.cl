// A search for a hash whose steps are one chain (MD4, MD5), with vectors of 16 words, one work-item in a work-group. Each iteration is independent of the others,
// but one of them is longer than what a processor looks ahead.
#define CHOOSE(x, y, z) (z ^ (x & (y ^ z)))
#define STEP(a, b, c, d, k, n) a = rotate(a + CHOOSE(b, c, d) + k, (uint16)(n)) + b
#define FOUR(k) STEP(a, b, c, d, k ^ w, 7); STEP(d, a, b, c, k * 3, 12); STEP(c, d, a, b, k * 5, 17); STEP(b, c, d, a, k * 7, 22)

kernel void searched_hash(constant uint16* words, global const uint* wanted, global uint* found, uint count) {
    const uint id = (uint)get_global_id(0);
    const uint target = wanted[id];
    for (uint i = 0; i < count; ++i) {
        uint16 w = words[i] ^ id;
        uint16 a = 0x67452301u, b = 0xefcdab89u, c = 0x98badcfeu, d = 0x10325476u;
        FOUR(0x5a827999u); FOUR(0x6ed9eba1u); FOUR(0x8f1bbcdcu); FOUR(0xca62c1d6u);
        FOUR(0x50a28be6u); FOUR(0x5c4dd124u); FOUR(0x6d703ef3u); FOUR(0x7a6d76e9u);
        FOUR(0xd76aa478u); FOUR(0xe8c7b756u);
        if (!any(a == target))
            continue;
        found[id] = i;
    }
}
