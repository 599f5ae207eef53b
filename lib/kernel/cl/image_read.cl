// read_image* (OpenCL C 3.0, sections 6.15.15.2 and 6.15.15.3).
#include "image_sample.h"

#define COORDINATES(T, WIDTH) COORDINATES_##WIDTH(T)
#define COORDINATES_1(T) T
#define COORDINATES_2(T) T##2
#define COORDINATES_4(T) T##4

#define SAMPLED(DIMS, IS_ARRAY) ((struct Sampled){DIMS, IS_ARRAY})

#define DEFINE_SAMPLED_READS(TYPE, DIMS, IS_ARRAY, WIDTH)                                              \
    BUILTIN float4 read_imagef(TYPE image, sampler_t sampler, COORDINATES(float, WIDTH) c) {           \
        return read_float(polder_image(image), polder_sampler(sampler), as_four(c),                    \
                          SAMPLED(DIMS, IS_ARRAY));                                                    \
    }                                                                                                  \
    BUILTIN half4 read_imageh(TYPE image, sampler_t sampler, COORDINATES(float, WIDTH) c) {            \
        return __builtin_convertvector(read_imagef(image, sampler, c), half4);                         \
    }                                                                                                  \
    BUILTIN int4 read_imagei(TYPE image, sampler_t sampler, COORDINATES(float, WIDTH) c) {             \
        return read_nearest_int(polder_image(image), polder_sampler(sampler), as_four(c),              \
                                SAMPLED(DIMS, IS_ARRAY));                                              \
    }                                                                                                  \
    BUILTIN uint4 read_imageui(TYPE image, sampler_t sampler, COORDINATES(float, WIDTH) c) {           \
        return as_uint4(read_imagei(image, sampler, c));                                               \
    }                                                                                                  \
    BUILTIN float4 read_imagef(TYPE image, sampler_t sampler, COORDINATES(int, WIDTH) c) {             \
        return read_whole_float(polder_image(image), polder_sampler(sampler), as_four(c),              \
                                SAMPLED(DIMS, IS_ARRAY));                                              \
    }                                                                                                  \
    BUILTIN half4 read_imageh(TYPE image, sampler_t sampler, COORDINATES(int, WIDTH) c) {              \
        return __builtin_convertvector(read_imagef(image, sampler, c), half4);                         \
    }                                                                                                  \
    BUILTIN int4 read_imagei(TYPE image, sampler_t sampler, COORDINATES(int, WIDTH) c) {               \
        return read_whole_int(polder_image(image), polder_sampler(sampler), as_four(c),                \
                              SAMPLED(DIMS, IS_ARRAY));                                                \
    }                                                                                                  \
    BUILTIN uint4 read_imageui(TYPE image, sampler_t sampler, COORDINATES(int, WIDTH) c) {             \
        return as_uint4(read_imagei(image, sampler, c));                                               \
    }
FOR_READABLE_IMAGES(DEFINE_SAMPLED_READS, read_only)

#define DEFINE_SAMPLED_DEPTH_READS(TYPE, DIMS, IS_ARRAY, WIDTH)                                        \
    BUILTIN float read_imagef(TYPE image, sampler_t sampler, COORDINATES(float, WIDTH) c) {            \
        return read_float(polder_image(image), polder_sampler(sampler), as_four(c),                    \
                          SAMPLED(DIMS, IS_ARRAY)).x;                                                  \
    }                                                                                                  \
    BUILTIN float read_imagef(TYPE image, sampler_t sampler, COORDINATES(int, WIDTH) c) {              \
        return read_whole_float(polder_image(image), polder_sampler(sampler), as_four(c),              \
                                SAMPLED(DIMS, IS_ARRAY)).x;                                            \
    }
FOR_DEPTH_IMAGES(DEFINE_SAMPLED_DEPTH_READS, read_only)

#define DEFINE_READS(TYPE, DIMS, IS_ARRAY, WIDTH)                                                      \
    BUILTIN float4 read_imagef(TYPE image, COORDINATES(int, WIDTH) c) {                                \
        return read_plain_float(polder_image(image), as_four(c), DIMS + IS_ARRAY);                     \
    }                                                                                                  \
    BUILTIN half4 read_imageh(TYPE image, COORDINATES(int, WIDTH) c) {                                 \
        return __builtin_convertvector(read_imagef(image, c), half4);                                  \
    }                                                                                                  \
    BUILTIN int4 read_imagei(TYPE image, COORDINATES(int, WIDTH) c) {                                  \
        return read_plain_int(polder_image(image), as_four(c), DIMS + IS_ARRAY);                       \
    }                                                                                                  \
    BUILTIN uint4 read_imageui(TYPE image, COORDINATES(int, WIDTH) c) {                                \
        return as_uint4(read_imagei(image, c));                                                        \
    }
FOR_IMAGES_WITHOUT_DEPTH(DEFINE_READS, read_only)
FOR_IMAGES_WITHOUT_DEPTH(DEFINE_READS, read_write)

#define DEFINE_DEPTH_READS(TYPE, DIMS, IS_ARRAY, WIDTH)                                                \
    BUILTIN float read_imagef(TYPE image, COORDINATES(int, WIDTH) c) {                                 \
        return read_plain_float(polder_image(image), as_four(c), DIMS + IS_ARRAY).x;                   \
    }
FOR_DEPTH_IMAGES(DEFINE_DEPTH_READS, read_only)
FOR_DEPTH_IMAGES(DEFINE_DEPTH_READS, read_write)
