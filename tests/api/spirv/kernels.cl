// Kernels that are built from this source and, by Clang, from SPIR-V: both must compute the same bits. All take 1024 words
// of input, made up by the test, and 4096 words of output; each of 64 work-items (groups of 16) owns 64 words of it.
#pragma OPENCL FP_CONTRACT OFF

#define KERNEL(name) kernel void name(global const uint* in, global uint* out)
#define ITEM size_t i = get_global_id(0); global uint* mine = out + 64 * i
// Numbers of moderate size, both signs.
#define REAL(k) ((float)(int)in[(i * 7 + (k)) & 1023] * 0x1p-24f)
#define POSITIVE(k) (0.25f + (float)(in[(i * 5 + (k)) & 1023] >> 8) * 0x1p-20f)

KERNEL(integers) {
    ITEM;
    uint a = in[i], b = in[i + 64] | 1, c = in[i + 128];
    int s = (int)a, t = (int)b;
    mine[0] = a + b; mine[1] = a - b; mine[2] = a * b; mine[3] = a / b; mine[4] = a % b;
    mine[5] = s / t; mine[6] = s % t; mine[7] = a << (b & 31); mine[8] = a >> (b & 31); mine[9] = s >> (b & 31);
    mine[10] = a & b; mine[11] = a | b; mine[12] = a ^ b; mine[13] = ~a; mine[14] = -s;
    mine[15] = a < b; mine[16] = s < t; mine[17] = a >= b; mine[18] = s != t; mine[19] = (a > b) ? c : a;
    ulong l = ((ulong)a << 32) | c;
    long m = (long)l;
    ulong q = l / (b | 3), r = (ulong)(m % (long)(b | 3));
    mine[20] = (uint)q; mine[21] = (uint)(q >> 32); mine[22] = (uint)r; mine[23] = (uint)(r >> 32);
    uchar h = (uchar)a; char g = (char)b; ushort u = (ushort)c; short v = (short)a;
    mine[24] = h; mine[25] = (int)g; mine[26] = u; mine[27] = (int)v; mine[28] = (uchar)(h + g); mine[29] = (short)(u * v);
}

KERNEL(integer_functions) {
    ITEM;
    uint a = in[i], b = in[i + 64], c = in[i + 128];
    int s = (int)a, t = (int)b, w = (int)c;
    mine[0] = abs(s); mine[1] = abs_diff(s, t); mine[2] = abs_diff(a, b); mine[3] = add_sat(s, t); mine[4] = add_sat(a, b);
    mine[5] = hadd(s, t); mine[6] = hadd(a, b); mine[7] = rhadd(s, t); mine[8] = rhadd(a, b);
    mine[9] = clamp(s, min(t, w), max(t, w)); mine[10] = clamp(a, min(b, c), max(b, c));
    mine[11] = clz(a); mine[12] = ctz(b); mine[13] = mad_hi(s, t, w); mine[14] = mad_hi(a, b, c);
    mine[15] = mad_sat(s, t, w); mine[16] = mad_sat(a, b, c); mine[17] = mul_hi(s, t); mine[18] = mul_hi(a, b);
    mine[19] = rotate(a, b); mine[20] = sub_sat(s, t); mine[21] = sub_sat(a, b); mine[22] = popcount(a);
    mine[23] = upsample((ushort)a, (ushort)b); mine[24] = upsample((short)a, (ushort)b);
    mine[25] = mad24(s >> 9, t >> 9, w); mine[26] = mul24(a & 0xffffff, b & 0xff); mine[27] = min(s, t); mine[28] = max(a, b);
    char4 x = as_char4(a), y = as_char4(b);
    mine[29] = as_uint(add_sat(x, y)); mine[30] = as_uint(max(x, y)); mine[31] = as_uint(abs(x));
    mine[32] = as_uint(rotate(x, y)); mine[33] = as_uint(bitselect(x, y, as_char4(c)));
    mine[34] = as_uint(select(x, y, as_char4(c)));
    ulong2 l = (ulong2)(upsample(a, b), upsample(b, c));
    ulong2 p = popcount(l), z = clz(l);
    mine[35] = (uint)p.x; mine[36] = (uint)z.y;
}

KERNEL(floats) {
    ITEM;
    float a = REAL(0), b = REAL(64), c = REAL(128);
    mine[0] = as_uint(a + b); mine[1] = as_uint(a - b); mine[2] = as_uint(a * b); mine[3] = as_uint(a / b);
    mine[4] = as_uint(-a); mine[5] = a < b; mine[6] = a == b; mine[7] = a != b; mine[8] = a >= b;
    mine[9] = isnan(a); mine[10] = isinf(a / 0.0f); mine[11] = isfinite(b); mine[12] = isnormal(c); mine[13] = signbit(a);
    mine[14] = isless(a, b); mine[15] = islessgreater(a, c); mine[16] = isordered(a, b); mine[17] = isunordered(a, b);
    float4 v = (float4)(a, b, c, a * b), w = v.wzyx + v.yxwz;
    vstore4(as_uint4(w * 2.0f + a), 5, mine);
    vstore4(as_uint4(v > w), 6, mine);
    mine[28] = any(v > w); mine[29] = all(v == v); mine[30] = as_uint(dot(v, w)); mine[31] = as_uint(length(v.xyz));
    vstore3(as_uint3(cross(v.xyz, w.xyz)), 11, mine);
    mine[36] = as_uint(fmod(a, b)); mine[37] = as_uint(v.s2); v.s2 = b; mine[38] = as_uint(v.z);
    double d = (double)a * (double)b + 1.0;
    mine[39] = as_uint((float)d); mine[40] = as_uint2(d).x; mine[41] = as_uint2(sqrt(fabs(d))).y;
}

KERNEL(math) {
    ITEM;
    float a = REAL(0), b = REAL(64), p = POSITIVE(3);
    float4 v = (float4)(a, b, p, a - b);
    int e;
    float f;
    mine[0] = as_uint(sin(a)); mine[1] = as_uint(cos(a)); mine[2] = as_uint(tan(a)); mine[3] = as_uint(exp(b * 0.125f));
    mine[4] = as_uint(log(p)); mine[5] = as_uint(log2(p)); mine[6] = as_uint(pow(p, b * 0.0625f)); mine[7] = as_uint(sqrt(p));
    mine[8] = as_uint(rsqrt(p)); mine[9] = as_uint(cbrt(a)); mine[10] = as_uint(atan2(a, b)); mine[11] = as_uint(hypot(a, b));
    mine[12] = as_uint(floor(a)); mine[13] = as_uint(ceil(a)); mine[14] = as_uint(rint(a)); mine[15] = as_uint(round(a));
    mine[16] = as_uint(trunc(a)); mine[17] = as_uint(fma(a, b, p)); mine[18] = as_uint(fmax(a, b)); mine[19] = as_uint(fdim(a, b));
    mine[20] = as_uint(frexp(a, &e)); mine[21] = e; mine[22] = as_uint(modf(a, &f)); mine[23] = as_uint(f);
    mine[24] = as_uint(sincos(a, &f)); mine[25] = as_uint(f); mine[26] = as_uint(remquo(a, b, &e)); mine[27] = e & 7;
    mine[28] = as_uint(ldexp(a, (int)(i & 7))); mine[29] = ilogb(p); mine[30] = as_uint(pown(a, 3)); mine[31] = as_uint(rootn(p, 3));
    mine[32] = as_uint(nextafter(a, b)); mine[33] = as_uint(copysign(a, b)); mine[34] = as_uint(nan(3u)); mine[35] = as_uint(erf(a));
    vstore4(as_uint4(sin(v)), 9, mine); vstore4(as_uint4(fabs(v) + exp2(v * 0.125f)), 10, mine);
    mine[44] = as_uint(mix(a, b, 0.25f)); mine[45] = as_uint(smoothstep(-1.0f, 1.0f, a)); mine[46] = as_uint(step(a, b));
    mine[47] = as_uint(clamp(a, -0.5f, 0.5f)); mine[48] = as_uint(degrees(a)); mine[49] = as_uint(sign(b));
    mine[50] = as_uint(native_exp(b * 0.125f)); mine[51] = as_uint(half_sin(a * 0.125f)); mine[52] = as_uint(mad(a, b, p) - (a * b + p) == 0.0f);
    mine[53] = as_uint(fract(a, &f)); mine[54] = as_uint(lgamma_r(p, &e)); mine[55] = e; mine[56] = as_uint(maxmag(a, b));
    mine[57] = as_uint(acos(a * 0x1p-8f)); mine[58] = as_uint(atanpi(a)); mine[59] = as_uint(tgamma(p * 0.25f)); mine[60] = as_uint(expm1(a * 0.01f));
}

KERNEL(conversions) {
    ITEM;
    float a = REAL(0) * 3.0f, p = POSITIVE(5);
    uint u = in[i];
    mine[0] = (int)a; mine[1] = (uint)p; mine[2] = as_uint((float)u); mine[3] = as_uint((float)(int)u);
    mine[4] = convert_int_sat(a * 1e9f); mine[5] = convert_uint_sat(a * 1e8f); mine[6] = convert_int_rte(a); mine[7] = convert_int_rtp(a);
    mine[8] = convert_int_rtn(a); mine[9] = convert_uchar_sat(a); mine[10] = (int)convert_char_sat_rte(a); mine[11] = convert_ushort_sat((int)u);
    mine[12] = (int)convert_short_sat(u); mine[13] = as_uint(convert_float_rtz(u)); mine[14] = as_uint(convert_float_rtp((int)u));
    mine[15] = convert_uchar_sat((int)u); mine[16] = (int)convert_char_sat(u);
    vstore4(convert_uint4_sat((float4)(a, p, -a, a * p)), 5, mine);
    mine[24] = as_uint(convert_uchar4_sat((int4)((int)u, (int)u >> 8, (int)a, -3))); mine[25] = as_uint(convert_float_rtz((double)a * 1.1));
    vstore_half(a, 60, (global half*)mine); vstore_half_rtz(p, 61, (global half*)mine); mine[31] = as_uint(vload_half(60, (global half*)mine));
    vstore_half4((float4)(a, p, 1.0f, -a), 16, (global half*)mine); float4 h = vload_half4(16, (global half*)mine);
    vstore4(as_uint4(h), 9, mine); mine[40] = as_uint((float)(long)u * a); mine[41] = (uint)(ulong)p; mine[42] = (uint)(u != 0u);
}

KERNEL(vectors) {
    ITEM;
    uint4 a = vload4(i, in), b = vload4(i + 64, in);
    vstore4(a + b, 0, mine); vstore4(a.wzyx ^ b, 1, mine); vstore4((uint4)(a.xy, b.zw), 2, mine);
    uint8 c = (uint8)(a, b); vstore8(c.s76543210, 2, mine); vstore4(shuffle(a, b), 6, mine); vstore4(shuffle2(a, b, a >> 3), 7, mine);
    uint16 d = (uint16)(c, c.odd, c.even); mine[32] = d.sf ^ d.s9; d.sa = 5; mine[33] = d.sa + d.sb;
    mine[34] = a[i & 3]; a[i & 3] = 17; vstore4(a, 9, mine); vstore4(select(a, b, (int4)(-1, 0, -1, 0)), 10, mine);
    uint3 e = a.xyz; vstore3(e * 3u, 15, mine); vstore2(as_uint2(as_ulong(a.xy) + 1ul), 24, mine); mine[50] = (a < b).x; mine[51] = as_uint(as_short2(a.x) + (short2)(1, 2));
    short8 s = convert_short8(c); mine[52] = (int)s.s3; mine[53] = any(as_int4(a) < 0) + 2 * all(a == a);
}

typedef struct { int number; float4 vector; char letters[5]; } Record;
Record changed(Record r, int by) { r.number += by; r.vector *= 2.0f; r.letters[by & 3] = 'x'; return r; }
int collatz(uint n) { int steps = 0; while (n != 1 && steps < 200) { n = n % 2 ? 3 * n + 1 : n / 2; ++steps; } return steps; }

KERNEL(structures) {
    ITEM;
    Record r = {(int)in[i], (float4)(1.0f, 2.0f, REAL(1), REAL(2)), "abc"}, list[3];
    for (int k = 0; k < 3; ++k) list[k] = changed(r, k + (int)(i & 3));
    Record copy = list[i % 3];
    mine[0] = copy.number; vstore4(as_uint4(copy.vector), 1, mine); mine[8] = copy.letters[i & 3]; mine[9] = sizeof(Record);
    union { float f; uint u; uchar b[4]; } pun; pun.f = REAL(3); mine[10] = pun.u; mine[11] = pun.b[2];
}

constant uint table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
constant float4 vector_table[2] = {(float4)(1, 2, 3, 4), (float4)(5, 6, 7, 8)};

KERNEL(control) {
    ITEM;
    uint sum = 0;
    for (uint k = 0; k < (i & 15); ++k) { if (k == 9) break; if (k & 1) continue; sum += table[k & 7] * in[k]; }
    switch (in[i] % 7) { case 0: sum += 10; break; case 1: sum ^= 99; case 2: sum *= 3; break; case 5: sum = ~sum; break; default: sum -= 1; }
    switch ((ulong)in[i] << 33) { case 0x1fffffffful << 33: sum += 1; break; case 7: sum += 2; }
    mine[0] = sum; mine[1] = collatz(in[i] % 1000 + 1); mine[2] = as_uint(vector_table[i & 1].z); mine[3] = in[i] > 7 && in[i + 1] < 1u << 30 || i == 3;
    uint x = in[i], y = in[i + 1] | 1; do { uint z = x % y; x = y; y = z; } while (y != 0); mine[4] = x;
    private uint stack[16]; for (int k = 0; k < 16; ++k) stack[k] = in[(k * i) & 1023]; for (int k = 15; k > 0; --k) stack[k - 1] ^= stack[k]; mine[5] = stack[0];
}

KERNEL(work_items) {
    ITEM;
    for (uint d = 0; d < 3; ++d) {
        mine[d] = get_global_id(d); mine[3 + d] = get_local_id(d); mine[6 + d] = get_group_id(d); mine[9 + d] = get_global_size(d);
        mine[12 + d] = get_local_size(d); mine[15 + d] = get_num_groups(d); mine[18 + d] = get_global_offset(d); mine[21 + d] = get_enqueued_local_size(d);
    }
    mine[24] = get_work_dim(); mine[25] = get_global_linear_id(); mine[26] = get_local_linear_id(); mine[27] = get_global_id((uint)(in[i] & 1));
}

uint of_generic(const uint* p) { return p[0] + p[1]; }

KERNEL(local_memory) {
    ITEM;
    local uint shared[16];
    local float4 more[4];
    size_t l = get_local_id(0);
    shared[l] = in[i];
    if (l < 4) more[l] = (float4)(l);
    barrier(CLK_LOCAL_MEM_FENCE);
    mine[0] = shared[15 - l]; mine[1] = as_uint(more[l & 3].y);
    for (uint step = 8; step > 0; step >>= 1) { if (l < step) shared[l] += shared[l + step]; work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group); }
    mine[2] = shared[0]; mine[3] = of_generic(shared) + of_generic((const uint*)in); uint own[2] = {mine[0], 3}; mine[4] = of_generic(own);
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t e = async_work_group_copy(shared, in + 16 * get_group_id(0), 16, 0);
    wait_group_events(1, &e);
    mine[5] = shared[l] ^ shared[l ^ 1];
}

KERNEL(atomics) {
    ITEM;
    local uint counter, most;
    local int least;
    if (get_local_id(0) == 0) { counter = 0; most = 0; least = 0x7fffffff; }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&counter, in[i]); atomic_max(&most, in[i]); atomic_min(&least, (int)in[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    mine[0] = counter; mine[1] = most; mine[2] = least;
    global atomic_uint* object = (global atomic_uint*)(mine + 3);
    atomic_init(object, in[i]);
    mine[4] = atomic_fetch_add_explicit(object, 3u, memory_order_relaxed, memory_scope_device);
    mine[5] = atomic_fetch_xor_explicit(object, 77u, memory_order_acq_rel, memory_scope_work_group);
    uint expected = 5; mine[6] = atomic_compare_exchange_strong(object, &expected, 9u); mine[7] = expected;
    mine[8] = atomic_exchange(object, 12u); mine[9] = atomic_load(object); atomic_store(object, 13u);
    mine[10] = atomic_cmpxchg((volatile global uint*)(mine + 3), 13u, 14u); mine[11] = atomic_inc((volatile global uint*)(mine + 3));
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
}

KERNEL(collectives) {
    ITEM;
    uint x = in[i] & 0xffff;
    mine[0] = work_group_all(x > 3); mine[1] = work_group_any(x < 40000); mine[2] = work_group_broadcast(x, 5); mine[3] = work_group_reduce_add(x);
    mine[4] = work_group_scan_inclusive_max(x); mine[5] = work_group_scan_exclusive_add((int)x); mine[6] = work_group_reduce_min(x);
}

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define HALF(k) ((half)((int)(in[(i * 3 + (k)) & 1023] & 0xffff) - 32768) * 0x1p-6h)
#define BITS(h) as_ushort((half)(h))

KERNEL(halves) {
    ITEM;
    half a = HALF(0), b = HALF(1), p = fabs(HALF(2)) + 0.25h;
    mine[0] = BITS(a + b); mine[1] = BITS(a - b); mine[2] = BITS(a * b); mine[3] = BITS(a / p); mine[4] = BITS(-a);
    mine[5] = a < b; mine[6] = a == b; mine[7] = isunordered(a, b / 0.0h); mine[8] = BITS(a > b ? a : p);
    mine[9] = BITS(fma(a, b, p)); mine[10] = BITS(sin(a)); mine[11] = BITS(exp(a * 0x1p-7h)); mine[12] = BITS(log2(p));
    mine[13] = BITS(pow(p, b * 0x1p-8h)); mine[14] = BITS(sqrt(p)); mine[15] = BITS(rint(a)); mine[16] = BITS(fmod(a, p));
    int e; half m = frexp(a, &e);
    mine[17] = BITS(m); mine[18] = (uint)e; mine[19] = BITS(ldexp(b, 3)); mine[20] = BITS(nextafter(a, b));
    mine[21] = (uint)convert_int_sat_rte(a); mine[22] = convert_uchar_sat(b); mine[23] = BITS(convert_half_rtz(REAL(3)));
    mine[24] = BITS(convert_half_rtp((int)in[i])); mine[25] = BITS((half)REAL(4)); mine[26] = as_uint((float)a);
    mine[27] = (uint)(int)b; mine[28] = BITS((half)(short)in[i]); mine[29] = BITS(convert_half(in[i + 64]));
    half4 v = (half4)(a, b, p, a * 0.5h), w = v.wzyx;
    mine[30] = BITS(dot(v * 0x1p-6h, w * 0x1p-6h)); mine[31] = BITS(length(v * 0x1p-4h));
    ushort4 sum = as_ushort4(v + w * 2.0h), less = as_ushort4(v < w), chosen = as_ushort4(select(v, w, v > w));
    mine[32] = sum.x; mine[33] = sum.y; mine[34] = sum.z; mine[35] = sum.w;
    mine[36] = less.x; mine[37] = less.y; mine[38] = chosen.z; mine[39] = chosen.w;
    ushort4 mixed = as_ushort4(shuffle(v, (ushort4)(3, 1, 0, 2)));
    mine[40] = mixed.x; mine[41] = mixed.y; mine[42] = mixed.z; mine[43] = mixed.w;
    vstore4(v, 22, (global half*)mine);
    vstore3(vload3(29, (global half*)mine), 32, (global half*)mine);
    ushort4 limited = as_ushort4(convert_half4_rtn(convert_int4_sat(v)));
    mine[52] = limited.x; mine[53] = limited.y; mine[54] = BITS(clamp(a, -2.0h, 2.0h)); mine[55] = BITS(smoothstep(-1.0h, 2.0h, b));
    mine[56] = BITS(work_group_reduce_max(a)); mine[57] = BITS(work_group_scan_inclusive_add(p));
}

// Of Clang's modules, the specification allows none of these.
KERNEL(one_for_all) {
    ITEM;
    int s = (int)in[i];
    int4 v = convert_int4((int4)(s, (int)in[i + 64], (int)in[i + 128], (int)in[i + 192]));
    ulong2 w = convert_ulong2(upsample(as_uint4(v).xy, as_uint4(v).zw));
    float4 scaled = ldexp((float4)(REAL(0), REAL(1), REAL(2), REAL(3)), s & 31);
    vstore4(as_uint4(v), 0, mine);
    vstore4(as_uint4(w), 1, mine);
    vstore4(as_uint4(scaled), 2, mine);
    mine[12] = all(s); mine[13] = any(s); mine[14] = all((short)s); mine[15] = any((long)s << 32);
}
