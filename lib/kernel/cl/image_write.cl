// write_image* (OpenCL C 3.0, section 6.15.15.4). Writes outside of an image are undefined; here they do nothing.
#include "image.h"

#define COORDINATES(T, WIDTH) COORDINATES_##WIDTH(T)
#define COORDINATES_1(T) T
#define COORDINATES_2(T) T##2
#define COORDINATES_4(T) T##4

// Rounded to the nearest even and saturated; NaN becomes 0, which maxnum makes of it.
static inline uint unorm8(float value) {
    return (uint)__builtin_elementwise_rint(
        __builtin_elementwise_min(__builtin_elementwise_max(value * 255.0f, 0.0f), 255.0f));
}

static inline __attribute__((always_inline)) void store_float(Image image, int4 at, int count, float4 color) {
    if (!is_inside(image, at, count))
        return;
    switch (image->kind) {
    case KIND_RGBA_FLOAT: *(__global float4*)element_at(image, at, count, 16) = color; return;
    case KIND_RGBA_UNORM8:
        *(__global uint*)element_at(image, at, count, 4) =
            unorm8(color.x) | unorm8(color.y) << 8 | unorm8(color.z) << 16 | unorm8(color.w) << 24;
        return;
    case KIND_R_FLOAT: *(__global float*)element_at(image, at, count, 4) = color.x; return;
    case KIND_R_UNORM8: *element_at(image, at, count, 1) = (uchar)unorm8(color.x); return;
    default: polder_image_store_float(image, element_at(image, at, count, image->element_bytes), color); return;
    }
}

static inline uint limited(uint value) { return value < 255 ? value : 255; }

static inline __attribute__((always_inline)) void store_int(Image image, int4 at, int count, int4 color) {
    if (!is_inside(image, at, count))
        return;
    switch (image->kind) {
    case KIND_RGBA_INT32: *(__global int4*)element_at(image, at, count, 16) = color; return;
    case KIND_RGBA_UINT8:
        *(__global uint*)element_at(image, at, count, 4) =
            limited(color.x) | limited(color.y) << 8 | limited(color.z) << 16 | limited(color.w) << 24;
        return;
    default: polder_image_store_int(image, element_at(image, at, count, image->element_bytes), color); return;
    }
}

#define DEFINE_WRITES(TYPE, DIMS, IS_ARRAY, WIDTH)                                                     \
    BUILTIN void write_imagef(TYPE image, COORDINATES(int, WIDTH) c, float4 color) {                   \
        store_float(polder_image(image), as_four(c), DIMS + IS_ARRAY, color);                          \
    }                                                                                                  \
    BUILTIN void write_imageh(TYPE image, COORDINATES(int, WIDTH) c, half4 color) {                    \
        write_imagef(image, c, __builtin_convertvector(color, float4));                                \
    }                                                                                                  \
    BUILTIN void write_imagei(TYPE image, COORDINATES(int, WIDTH) c, int4 color) {                     \
        store_int(polder_image(image), as_four(c), DIMS + IS_ARRAY, color);                            \
    }                                                                                                  \
    BUILTIN void write_imageui(TYPE image, COORDINATES(int, WIDTH) c, uint4 color) {                   \
        store_int(polder_image(image), as_four(c), DIMS + IS_ARRAY, as_int4(color));                   \
    }
FOR_IMAGES_WITHOUT_DEPTH(DEFINE_WRITES, write_only)
FOR_IMAGES_WITHOUT_DEPTH(DEFINE_WRITES, read_write)

#define DEFINE_DEPTH_WRITES(TYPE, DIMS, IS_ARRAY, WIDTH)                                               \
    BUILTIN void write_imagef(TYPE image, COORDINATES(int, WIDTH) c, float depth) {                    \
        store_float(polder_image(image), as_four(c), DIMS + IS_ARRAY, (float4)(depth, 0, 0, 0));       \
    }
FOR_DEPTH_IMAGES(DEFINE_DEPTH_WRITES, write_only)
FOR_DEPTH_IMAGES(DEFINE_DEPTH_WRITES, read_write)
