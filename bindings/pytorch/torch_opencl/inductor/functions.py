"""Functions in OpenCL C that generated kernels call. A kernel's source has those whose names occur in its body."""
import re

import torch

_FUNCTIONS = {
    "t_bfloat16_value": "inline float t_bfloat16_value(ushort bits) { return as_float((uint)bits << 16); }",
    "t_bfloat16_bits": """
inline ushort t_bfloat16_bits(float v) {
  uint u = as_uint(v);
  return isnan(v) ? (ushort)0x7fc0 : (ushort)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}""",
    "t_half_bits": """
inline ushort t_half_bits(float v) { ushort bits; vstore_half(v, 0, (half*)&bits); return bits; }""",
    "t_half_value": """
inline float t_half_value(ushort bits) { return vload_half(0, (const half*)&bits); }""",
    "t_floor_div": """
inline long t_floor_div(long a, long b) { long q = a / b; return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q; }""",
    "t_floor_mod": """
inline long t_floor_mod(long a, long b) { long m = a % b; return m != 0 && (m < 0) != (b < 0) ? m + b : m; }""",
    "t_pow_long": """
inline long t_pow_long(long a, long b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
  long r = 1;
  for (; b > 0; b >>= 1, a *= a) if (b & 1) r *= a;
  return r;
}""",
    # Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): Philox with four words and ten rounds.
    "t_philox": """
inline uint4 t_philox(long seed, long offset) {
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  uint4 c = (uint4)((uint)offset, (uint)(offset >> 32), 0, 0);
  for (int i = 0; i < 10; ++i) {
    c = (uint4)(mul_hi(0xCD9E8D57u, c.z) ^ c.y ^ key.x, 0xCD9E8D57u * c.z,
                mul_hi(0xD2511F53u, c.x) ^ c.w ^ key.y, 0xD2511F53u * c.x);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}""",
    "t_rand": "inline float t_rand(long seed, long offset) { return (t_philox(seed, offset).x >> 8) * 0x1p-24f; }",
    # Box and Muller (1958).
    "t_randn": """
inline float t_randn(long seed, long offset) {
  uint4 r = t_philox(seed, offset);
  return sqrt(-2 * log(((r.x >> 8) + 1) * 0x1p-24f)) * cospi(2 * (r.y >> 8) * 0x1p-24f);
}""",
    "t_randint": """
inline long t_randint(long seed, long offset, long low, long high) {
  uint4 r = t_philox(seed, offset);
  ulong range = (ulong)high - (ulong)low;
  return low + (long)(range <= UINT_MAX ? r.x % range : (((ulong)r.y << 32) | r.x) % range);
}""",
    "t_add_float": """
inline void t_add_float(volatile global float* p, float v) {
  volatile global uint* bits = (volatile global uint*)p;
  uint old = *bits, seen;
  while ((seen = atomic_cmpxchg(bits, old, as_uint(as_float(old) + v))) != old) old = seen;
}""",
    "t_add_int": "inline void t_add_int(volatile global int* p, int v) { atomic_add(p, v); }",
    # Two elements share a word.
    "t_add_half": """
inline void t_add_half(volatile global half* p, float v) {
  volatile global uint* word = (volatile global uint*)((ulong)p & ~3ul);
  uint shift = ((ulong)p & 2) * 8, old = *word, seen;
  for (;;) {
    uint sum = t_half_bits(t_half_value((ushort)(old >> shift)) + v);
    seen = atomic_cmpxchg(word, old, (old & ~(0xffffu << shift)) | (sum << shift));
    if (seen == old) return;
    old = seen;
  }
}""",
}


# Functions of the eager kernels.
_EAGER = ("t_erf", "t_erfinv")


def functions_for(body):
    """The source of the functions that `body` calls, and of those that they call."""
    wanted, texts, eager = [body], {}, set()
    while wanted:
        for name in re.findall(r"\bt_\w+", wanted.pop()):
            if name in _EAGER:
                eager.add(name)
            elif name not in texts:
                texts[name] = _FUNCTIONS[name].strip()
                wanted.append(texts[name])
    # The package's own functions come first, because any other function may call the conversions of half.
    own = "".join(texts[name] + "\n" for name in _FUNCTIONS if name in texts)
    if not eager:
        return own
    return f"{own}#define T float\n{torch.ops.opencl.helper_functions(' '.join(sorted(eager)))}#undef T\n"
