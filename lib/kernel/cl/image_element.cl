// Elements of any format: OpenCL C 3.0, sections 6.15.15 (mapping of channels to components) and 8.3 (conversions).
#include "image.h"

// Component `channel` of an element whose channels are not packed. A product with the reciprocal is within 1.5 units in the last place, which section
// 8.3.1.1 allows, and the largest number becomes 1; a division of lanes takes ten times as long.
static inline float channel_as_float(uint type, const __global uchar* at, uint channel) {
    switch (type) {
    case CLK_UNORM_INT8: return at[channel] * (1.0f / 255.0f);
    case CLK_UNORM_INT16: return ((const __global ushort*)at)[channel] * (1.0f / 65535.0f);
    case CLK_SNORM_INT8:
        return __builtin_elementwise_max(((const __global char*)at)[channel] * (1.0f / 127.0f), -1.0f);
    case CLK_SNORM_INT16:
        return __builtin_elementwise_max(((const __global short*)at)[channel] * (1.0f / 32767.0f), -1.0f);
    case CLK_HALF_FLOAT: return vload_half(channel, (const __global half*)at);
    default: return ((const __global float*)at)[channel];
    }
}

// The four channels at once, where they have 16 bits: a third of the instructions, so that loops over neighbours are unrolled.
static inline float4 channels_as_float(uint type, const __global uchar* at) {
    switch (type) {
    case CLK_UNORM_INT16:
        return __builtin_convertvector(vload4(0, (const __global ushort*)at), float4) * (1.0f / 65535.0f);
    case CLK_SNORM_INT16:
        return __builtin_elementwise_max(
            __builtin_convertvector(vload4(0, (const __global short*)at), float4) * (1.0f / 32767.0f), (float4)(-1.0f));
    default:
        return (float4)(channel_as_float(type, at, 0), channel_as_float(type, at, 1), channel_as_float(type, at, 2),
                        channel_as_float(type, at, 3));
    }
}

static inline int channel_as_int(uint type, const __global uchar* at, uint channel) {
    switch (type) {
    case CLK_SIGNED_INT8: return ((const __global char*)at)[channel];
    case CLK_SIGNED_INT16: return ((const __global short*)at)[channel];
    case CLK_UNSIGNED_INT8: return at[channel];
    case CLK_UNSIGNED_INT16: return ((const __global ushort*)at)[channel];
    default: return ((const __global int*)at)[channel];
    }
}

// sRGB has channels of bytes alone. A read of a table takes a hundredth of the time of a power of doubles, and lanes can gather.
__constant const float polder_srgb_table[256] = {
#include "srgb_table.inc"
};

static inline float srgb_of_linear(float c) {
    if (!(c > 0))
        return 0;  // NaN too
    if (c < 0.0031308f)
        return 12.92f * c;
    return c >= 1 ? 1.0f : (float)(1.055 * pow((double)c, 1.0 / 2.4) - 0.055);
}

// The components to which the channels of an order belong. `one` is the value of a missing alpha.
#define DEFINE_ORDER(T)                                                                                \
    static inline T##4 polder_components_##T(uint order, T##4 c) {                                     \
        switch (order) {                                                                               \
        case CLK_R:                                                                                    \
        case CLK_Rx:                                                                                   \
        case CLK_DEPTH: return (T##4)(c.x, 0, 0, 1);                                                   \
        case CLK_A: return (T##4)(0, 0, 0, c.x);                                                       \
        case CLK_RG:                                                                                   \
        case CLK_RGx: return (T##4)(c.xy, 0, 1);                                                       \
        case CLK_RA: return (T##4)(c.x, 0, 0, c.y);                                                    \
        case CLK_RGB:                                                                                  \
        case CLK_RGBx:                                                                                 \
        case CLK_sRGB:                                                                                 \
        case CLK_sRGBx: return (T##4)(c.xyz, 1);                                                       \
        case CLK_BGRA:                                                                                 \
        case CLK_sBGRA: return c.zyxw;                                                                 \
        case CLK_ARGB: return c.yzwx;                                                                  \
        case CLK_ABGR: return c.wzyx;                                                                  \
        case CLK_INTENSITY: return c.xxxx;                                                             \
        case CLK_LUMINANCE: return (T##4)(c.xxx, 1);                                                   \
        default: return c;                                                                             \
        }                                                                                              \
    }                                                                                                  \
    static inline T##4 polder_channels_##T(uint order, T##4 c) {                                       \
        switch (order) {                                                                               \
        case CLK_A: return c.wwww;                                                                     \
        case CLK_RA: return c.xwxw;                                                                    \
        case CLK_BGRA:                                                                                 \
        case CLK_sBGRA: return c.zyxw;                                                                 \
        case CLK_ARGB: return c.wxyz;                                                                  \
        case CLK_ABGR: return c.wzyx;                                                                  \
        default: return c;                                                                             \
        }                                                                                              \
    }
DEFINE_ORDER(float)
DEFINE_ORDER(int)

static inline bool is_srgb(uint order) {
    return order == CLK_sRGB || order == CLK_sRGBx || order == CLK_sRGBA || order == CLK_sBGRA;
}

static inline uint bytes_of_channel(uint type) {
    switch (type) {
    case CLK_UNORM_INT8:
    case CLK_SNORM_INT8:
    case CLK_SIGNED_INT8:
    case CLK_UNSIGNED_INT8: return 1;
    case CLK_SIGNED_INT32:
    case CLK_UNSIGNED_INT32:
    case CLK_FLOAT: return 4;
    default: return 2;
    }
}

ANY_FORMAT float4 polder_image_load_float(Image image, const __global uchar* at) {
    const uint type = image->channel_type;
    const uint order = image->channel_order;
    switch (type) {
    case CLK_UNORM_SHORT_565: {
        const uint c = *(const __global ushort*)at;
        return (float4)((c >> 11) / 31.0f, (c >> 5 & 63) / 63.0f, (c & 31) / 31.0f, 1);
    }
    case CLK_UNORM_SHORT_555: {
        const uint c = *(const __global ushort*)at;
        return (float4)((c >> 10 & 31) / 31.0f, (c >> 5 & 31) / 31.0f, (c & 31) / 31.0f, 1);
    }
    case CLK_UNORM_INT_101010: {
        const uint c = *(const __global uint*)at;
        return (float4)((c >> 20 & 1023) / 1023.0f, (c >> 10 & 1023) / 1023.0f, (c & 1023) / 1023.0f, 1);
    }
    case CLK_UNORM_INT_101010_2: {
        const uint c = *(const __global uint*)at;
        return (float4)((c >> 22) / 1023.0f, (c >> 12 & 1023) / 1023.0f, (c >> 2 & 1023) / 1023.0f, (c & 3) / 3.0f);
    }
    default: break;
    }
    const uint count = image->element_bytes / bytes_of_channel(type);
    float4 c = 0;
    if (count > 2) {
        c = channels_as_float(type, at);
    } else {
        c.x = channel_as_float(type, at, 0);
        if (count > 1)
            c.y = channel_as_float(type, at, 1);
    }
    if (is_srgb(order))
        c.xyz = (float3)(polder_srgb_table[at[0]], polder_srgb_table[at[1]], polder_srgb_table[at[2]]);
    return polder_components_float(order, c);
}

ANY_FORMAT int4 polder_image_load_int(Image image, const __global uchar* at) {
    const uint type = image->channel_type;
    const uint count = image->element_bytes / bytes_of_channel(type);
    int4 c = 0;
    c.x = channel_as_int(type, at, 0);
    if (count > 1)
        c.y = channel_as_int(type, at, 1);
    if (count > 2) {
        c.z = channel_as_int(type, at, 2);
        c.w = channel_as_int(type, at, 3);
    }
    return polder_components_int(image->channel_order, c);
}

// --- stores ---

// Rounded to the nearest even and saturated; NaN becomes 0.
static inline uint unorm(float value, float max) {
    const float scaled = value * max;
    return (uint)__builtin_elementwise_rint(
        __builtin_elementwise_min(__builtin_elementwise_max(scaled == scaled ? scaled : 0.0f, 0.0f), max));
}
static inline int snorm(float value, float max) {
    const float scaled = value * max;
    return (int)__builtin_elementwise_rint(
        __builtin_elementwise_min(__builtin_elementwise_max(scaled == scaled ? scaled : 0.0f, -max - 1), max));
}

static inline void store_float_channel(uint type, __global uchar* at, uint channel, float value) {
    switch (type) {
    case CLK_UNORM_INT8: at[channel] = (uchar)unorm(value, 255); return;
    case CLK_UNORM_INT16: ((__global ushort*)at)[channel] = (ushort)unorm(value, 65535); return;
    case CLK_SNORM_INT8: ((__global char*)at)[channel] = (char)snorm(value, 127); return;
    case CLK_SNORM_INT16: ((__global short*)at)[channel] = (short)snorm(value, 32767); return;
    case CLK_HALF_FLOAT: vstore_half_rte(value, channel, (__global half*)at); return;
    default: ((__global float*)at)[channel] = value; return;
    }
}

static inline void store_int_channel(uint type, __global uchar* at, uint channel, int value) {
    switch (type) {
    case CLK_SIGNED_INT8: ((__global char*)at)[channel] = (char)smallest(largest(value, -128), 127); return;
    case CLK_SIGNED_INT16: ((__global short*)at)[channel] = (short)smallest(largest(value, -32768), 32767); return;
    case CLK_UNSIGNED_INT8: at[channel] = (uchar)((uint)value < 255 ? value : 255); return;
    case CLK_UNSIGNED_INT16: ((__global ushort*)at)[channel] = (ushort)((uint)value < 65535 ? value : 65535); return;
    default: ((__global int*)at)[channel] = value; return;
    }
}

ANY_FORMAT void polder_image_store_float(Image image, __global uchar* at, float4 color) {
    const uint type = image->channel_type;
    const uint order = image->channel_order;
    switch (type) {
    case CLK_UNORM_SHORT_565:
        *(__global ushort*)at = (ushort)(unorm(color.x, 31) << 11 | unorm(color.y, 63) << 5 | unorm(color.z, 31));
        return;
    case CLK_UNORM_SHORT_555:
        *(__global ushort*)at = (ushort)(unorm(color.x, 31) << 10 | unorm(color.y, 31) << 5 | unorm(color.z, 31));
        return;
    case CLK_UNORM_INT_101010:
        *(__global uint*)at = unorm(color.x, 1023) << 20 | unorm(color.y, 1023) << 10 | unorm(color.z, 1023);
        return;
    case CLK_UNORM_INT_101010_2:
        *(__global uint*)at = unorm(color.x, 1023) << 22 | unorm(color.y, 1023) << 12 | unorm(color.z, 1023) << 2 |
                              unorm(color.w, 3);
        return;
    default: break;
    }
    if (is_srgb(order))
        color.xyz = (float3)(srgb_of_linear(color.x), srgb_of_linear(color.y), srgb_of_linear(color.z));
    const uint count = image->element_bytes / bytes_of_channel(type);
    const float4 c = polder_channels_float(order, color);
    store_float_channel(type, at, 0, c.x);
    if (count > 1)
        store_float_channel(type, at, 1, c.y);
    if (count > 2) {
        store_float_channel(type, at, 2, c.z);
        store_float_channel(type, at, 3, c.w);
    }
}

ANY_FORMAT void polder_image_store_int(Image image, __global uchar* at, int4 color) {
    const uint type = image->channel_type;
    const uint count = image->element_bytes / bytes_of_channel(type);
    const int4 c = polder_channels_int(image->channel_order, color);
    store_int_channel(type, at, 0, c.x);
    if (count > 1)
        store_int_channel(type, at, 1, c.y);
    if (count > 2) {
        store_int_channel(type, at, 2, c.z);
        store_int_channel(type, at, 3, c.w);
    }
}

// --- samplers ---

// Clang calls this function for a sampler in the source. A sampler argument is its bits, too.
__private void* polder_sampler_of_bits(int bits) __asm__("__translate_sampler_initializer");
__private void* polder_sampler_of_bits(int bits) { return (__private void*)(size_t)(uint)bits; }
