kernel void crc(global const uint* data, constant uint* t, global uint* out, int words) {
  int g = get_global_id(0); uint c = 0xffffffff;
  for (int i = 0; i < words; ++i) { uint v = data[g * words + i]; for (int b = 0; b < 4; ++b) { c = t[(c ^ v) & 255] ^ (c >> 8); v >>= 8; } }
  out[g] = ~c;
}
