// The common part of the image functions: the descriptor, the bits of samplers, the addresses of elements.
//
// A kernel's image argument points to an ImageDescriptor (include/polder/image_abi.h); polder_image is that pointer, and
// polder_sampler the sampler's bits: retarget_builtins.cpp, which makes the library, replaces calls of them by their argument, and
// marks the descriptor's loads as invariant, so that kernels load it once per work-group.
//
// Code is made for the formats of a launch's images (targets/host/known_arguments.h): then no branch on formats and samplers is left, and
// the functions of image_element.cl are a few instructions. In code for any image the branches stay; formats of which there are many
// images have code of their own, which becomes a part of the kernel, and all others are read and written by these functions, one
// work-item after the other.
#pragma once

#include "common.h"

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

struct ImageDescriptor {
    __global uchar* data;
    ulong row_pitch;
    ulong slice_pitch;
    int width;
    int height;
    int depth;
    uint channel_order;
    uint channel_type;
    uint element_bytes;
    uint kind;
    uint reserved;
};
// Where descriptors are: the build says it for targets with several address spaces.
#ifndef POLDER_DESCRIPTOR_SPACE
#define POLDER_DESCRIPTOR_SPACE __constant
// Whether the library can have a variable in global memory: code for GPUs has none.
#define HAS_BORDER_ELEMENT 1
#else
#define HAS_BORDER_ELEMENT 0
#endif
typedef const POLDER_DESCRIPTOR_SPACE struct ImageDescriptor* Image;

// ImageKind of image_abi.h.
#define KIND_RGBA_FLOAT 1
#define KIND_RGBA_UNORM8 2
#define KIND_RGBA_INT32 3
#define KIND_RGBA_UINT8 4
#define KIND_R_FLOAT 5
#define KIND_R_UNORM8 6

// A sampler's bits: CLK_NORMALIZED_COORDS_TRUE is 1; of these two groups one value each.
#define ADDRESS_MASK 0xe
#define FILTER_MASK 0x30

// The kinds of images by how many coordinates they are sampled with. An array's last one is its layer.
#define FOR_READABLE_IMAGES(MACRO, ACCESS)                                                            \
    MACRO(ACCESS image1d_t, 1, 0, 1)                                                                   \
    MACRO(ACCESS image1d_array_t, 1, 1, 2)                                                             \
    MACRO(ACCESS image2d_t, 2, 0, 2)                                                                   \
    MACRO(ACCESS image2d_array_t, 2, 1, 4)                                                             \
    MACRO(ACCESS image3d_t, 3, 0, 4)
#define FOR_DEPTH_IMAGES(MACRO, ACCESS)                                                               \
    MACRO(ACCESS image2d_depth_t, 2, 0, 2)                                                             \
    MACRO(ACCESS image2d_array_depth_t, 2, 1, 4)
#define FOR_IMAGES_WITHOUT_DEPTH(MACRO, ACCESS)                                                       \
    FOR_READABLE_IMAGES(MACRO, ACCESS)                                                                 \
    MACRO(ACCESS image1d_buffer_t, 1, 0, 1)

#define FOR_ONE_ACCESS(MACRO, ACCESS)                                                                 \
    MACRO(ACCESS image1d_t)                                                                            \
    MACRO(ACCESS image1d_array_t)                                                                      \
    MACRO(ACCESS image1d_buffer_t)                                                                     \
    MACRO(ACCESS image2d_t)                                                                            \
    MACRO(ACCESS image2d_array_t)                                                                      \
    MACRO(ACCESS image2d_depth_t)                                                                      \
    MACRO(ACCESS image2d_array_depth_t)                                                                \
    MACRO(ACCESS image3d_t)
#define DECLARE_HANDLE(TYPE) __attribute__((overloadable, const)) Image polder_image(TYPE image);
FOR_ONE_ACCESS(DECLARE_HANDLE, read_only)
FOR_ONE_ACCESS(DECLARE_HANDLE, write_only)
FOR_ONE_ACCESS(DECLARE_HANDLE, read_write)
#undef DECLARE_HANDLE
__attribute__((overloadable, const)) uint polder_sampler(sampler_t sampler);

// One element of any format; `at` is its address. Such formats are rare in innermost loops, so these functions are never inlined.
#define ANY_FORMAT __attribute__((noinline, cold))
ANY_FORMAT float4 polder_image_load_float(Image image, const __global uchar* at);
ANY_FORMAT int4 polder_image_load_int(Image image, const __global uchar* at);
ANY_FORMAT void polder_image_store_float(Image image, __global uchar* at, float4 color);
ANY_FORMAT void polder_image_store_int(Image image, __global uchar* at, int4 color);

// --- coordinates, as vectors of four for every image type: the missing ones are 0 ---

static inline __attribute__((overloadable)) int4 as_four(int x) { return (int4)(x, 0, 0, 0); }
static inline __attribute__((overloadable)) int4 as_four(int2 x) { return (int4)(x, 0, 0); }
static inline __attribute__((overloadable)) int4 as_four(int4 x) { return x; }
static inline __attribute__((overloadable)) float4 as_four(float x) { return (float4)(x, 0, 0, 0); }
static inline __attribute__((overloadable)) float4 as_four(float2 x) { return (float4)(x, 0, 0); }
static inline __attribute__((overloadable)) float4 as_four(float4 x) { return x; }

static inline int largest(int a, int b) { return a > b ? a : b; }
static inline int smallest(int a, int b) { return a < b ? a : b; }

// Whether the first `count` coordinates are those of an element.
static inline bool is_inside(Image image, int4 at, int count) {
    bool is_in = (uint)at.x < (uint)image->width;
    if (count > 1)
        is_in &= (uint)at.y < (uint)image->height;
    if (count > 2)
        is_in &= (uint)at.z < (uint)image->depth;
    return is_in;
}

static inline __global uchar* element_at(Image image, int4 at, int count, uint element_bytes) {
    __global uchar* place = image->data + (long)at.x * element_bytes;
    if (count > 1)
        place += (long)at.y * (long)image->row_pitch;
    if (count > 2)
        place += (long)at.z * (long)image->slice_pitch;
    return place;
}
