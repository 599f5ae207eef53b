// Reading images: which elements a sampler chooses for a coordinate, and how they are combined. OpenCL C 3.0, section 8.2.
//
// A coordinate that is NaN chooses any element, or the border. It never becomes an address.
#pragma once

#include "image.h"

#define SAMPLING static inline __attribute__((always_inline))

// Which parts of a coordinate are used: the first `dims` are sampled, and in an array the next one is the layer.
struct Sampled {
    int dims;
    int is_array;
};

// Limited to -2 to size + 1, so that a coordinate outside stays outside. NaN becomes a coordinate outside.
SAMPLING int whole(float value, int size) {
    return (int)__builtin_elementwise_min(__builtin_elementwise_max(value, -2.0f), (float)size + 1.0f);
}

SAMPLING int into(int place, int size) { return smallest(largest(place, 0), size - 1); }

SAMPLING int layer_of(float layer, int count) { return into(whole(__builtin_elementwise_rint(layer), count), count); }

// The mirrored coordinate, from 0 to 1 and back, times the size. Products with 2 and its half have no error.
SAMPLING float mirrored(float s, int size) {
    const float half_of = 0.5f * s;
    return __builtin_elementwise_abs(half_of - __builtin_elementwise_rint(half_of)) * (2.0f * (float)size);
}

SAMPLING float unnormalized(float s, int size, uint sampler) {
    return sampler & CLK_NORMALIZED_COORDS_TRUE ? s * (float)size : s;
}

// Whether reads outside of the image return the border color. With CLK_ADDRESS_NONE they are undefined: they return the nearest element, which
// takes the least time.
SAMPLING bool has_border(uint sampler) { return (sampler & ADDRESS_MASK) == CLK_ADDRESS_CLAMP; }

// A number that is rounded down to the last element. Images are not so large that it has no such fraction.
SAMPLING float last_of(int size) { return (float)size - 0.5f; }

// What is not negative is rounded down by its conversion. Bounds are those of the coordinate, not of the element: within the image they change
// nothing, so lanes ask the first and the last of them alone whether they are a row.
SAMPLING int nearest_place(float s, int size, uint sampler) {
    const uint address = sampler & ADDRESS_MASK;
    if (address == CLK_ADDRESS_REPEAT) {
        const float u = (s - __builtin_elementwise_floor(s)) * (float)size;
        return (int)(u < (float)size ? u : 0.0f);  // the fraction may be rounded up to 1
    }
    if (address == CLK_ADDRESS_MIRRORED_REPEAT)
        return (int)__builtin_elementwise_min(mirrored(s, size), last_of(size));
    if (address == CLK_ADDRESS_CLAMP_TO_EDGE || address == CLK_ADDRESS_NONE)
        return (int)__builtin_elementwise_min(__builtin_elementwise_max(unnormalized(s, size, sampler), 0.0f),
                                              last_of(size));
    // With a border: used only where is_near says that it is inside.
    return (int)unnormalized(s, size, sampler);
}

// Whether nearest_place is inside of the image, where the sampler has a border. Compared as a float: this needs no rounding, and no bounds for
// the conversion.
SAMPLING bool is_near(float s, int size, uint sampler) {
    const float u = unnormalized(s, size, sampler);
    return (u >= 0.0f) & (u < (float)size);
}

struct Neighbours {
    int low;
    int high;
    float fraction;  // how near to the high one
};

SAMPLING struct Neighbours neighbours(float s, int size, uint sampler) {
    const uint address = sampler & ADDRESS_MASK;
    float u;
    if (address == CLK_ADDRESS_REPEAT)
        u = (s - __builtin_elementwise_floor(s)) * (float)size;
    else if (address == CLK_ADDRESS_MIRRORED_REPEAT)
        u = mirrored(s, size);
    else
        u = unnormalized(s, size, sampler);
    const float place = u - 0.5f;
    const float low = __builtin_elementwise_floor(place);
    struct Neighbours found = {whole(low, size), whole(low + 1.0f, size), place - low};
    if (address == CLK_ADDRESS_REPEAT) {
        found.low = found.low < 0 ? found.low + size : found.low;
        found.high = found.high > size - 1 ? found.high - size : found.high;
    }
    if (!has_border(sampler)) {
        found.low = into(found.low, size);
        found.high = into(found.high, size);
    }
    return found;
}

// The alpha of the color outside of an image: 0 for orders that have an alpha.
SAMPLING int border_alpha(Image image) {
    switch (image->channel_order) {
    case CLK_R:
    case CLK_RG:
    case CLK_RGB:
    case CLK_LUMINANCE:
    case CLK_sRGB: return 1;
    default: return 0;
    }
}

// What an element outside of an image consists of. As a color it is the border's, for all orders but those of has_clear_border_alone.
#if HAS_BORDER_ELEMENT
static const __global uint4 polder_image_border = 0;
SAMPLING const __global uchar* outside_of(Image image) { return (const __global uchar*)&polder_image_border; }
#else
SAMPLING const __global uchar* outside_of(Image image) { return image->data; }
#endif

// Whether elements of zeros are opaque, but the border is not.
SAMPLING bool has_clear_border_alone(Image image) {
    switch (image->channel_order) {
    case CLK_Rx:
    case CLK_RGx:
    case CLK_RGBx:
    case CLK_sRGBx: return true;
    default: return false;
    }
}

// The address to load from. Outside of the image it is that of zeros, so that the color needs no condition: lanes that load rows of
// elements can keep them in the order of memory. The address is selected, not the coordinates, so that neighbouring lanes have neighbouring
// addresses.
SAMPLING const __global uchar* place_of(Image image, int4 at, int count, uint element_bytes, bool is_in) {
    const __global uchar* place = element_at(image, at, count, element_bytes);
    return is_in ? place : outside_of(image);
}

// The color of what place_of has chosen.
#define DEFINE_CHOSEN_COLOR(T)                                                                         \
    SAMPLING T##4 chosen_##T(Image image, T##4 color, bool is_in) {                                    \
        if (!HAS_BORDER_ELEMENT)                                                                       \
            return is_in ? color : (T##4)(0, 0, 0, border_alpha(image));                               \
        if (has_clear_border_alone(image))                                                             \
            color.w = is_in ? color.w : 0;                                                             \
        return color;                                                                                  \
    }
DEFINE_CHOSEN_COLOR(float)
DEFINE_CHOSEN_COLOR(int)

// --- elements of a kind that is known when this is compiled ---

SAMPLING float4 float_of_kind(Image image, int4 at, int count, bool is_in, uint kind) {
    switch (kind) {
    case KIND_RGBA_FLOAT: return *(const __global float4*)place_of(image, at, count, 16, is_in);
    case KIND_RGBA_UNORM8: {
        // 255 times this is 1.
        const float unit = 1.0f / 255.0f;
        return __builtin_convertvector(*(const __global uchar4*)place_of(image, at, count, 4, is_in), float4) * unit;
    }
    case KIND_R_FLOAT: return (float4)(*(const __global float*)place_of(image, at, count, 4, is_in), 0, 0, 1);
    case KIND_R_UNORM8: return (float4)((float)*place_of(image, at, count, 1, is_in) * (1.0f / 255.0f), 0, 0, 1);
    default: return polder_image_load_float(image, place_of(image, at, count, image->element_bytes, is_in));
    }
}

SAMPLING int4 int_of_kind(Image image, int4 at, int count, bool is_in, uint kind) {
    switch (kind) {
    case KIND_RGBA_INT32: return *(const __global int4*)place_of(image, at, count, 16, is_in);
    case KIND_RGBA_UINT8:
        return __builtin_convertvector(*(const __global uchar4*)place_of(image, at, count, 4, is_in), int4);
    default: return polder_image_load_int(image, place_of(image, at, count, image->element_bytes, is_in));
    }
}

// --- one element of any kind ---

SAMPLING float4 load_float(Image image, int4 at, int count, bool is_in) {
    switch (image->kind) {
    case KIND_RGBA_FLOAT: return float_of_kind(image, at, count, is_in, KIND_RGBA_FLOAT);
    case KIND_RGBA_UNORM8: return float_of_kind(image, at, count, is_in, KIND_RGBA_UNORM8);
    case KIND_R_FLOAT: return float_of_kind(image, at, count, is_in, KIND_R_FLOAT);
    case KIND_R_UNORM8: return float_of_kind(image, at, count, is_in, KIND_R_UNORM8);
    default: return float_of_kind(image, at, count, is_in, 0);
    }
}

SAMPLING int4 load_int(Image image, int4 at, int count, bool is_in) {
    switch (image->kind) {
    case KIND_RGBA_INT32: return int_of_kind(image, at, count, is_in, KIND_RGBA_INT32);
    case KIND_RGBA_UINT8: return int_of_kind(image, at, count, is_in, KIND_RGBA_UINT8);
    default: return int_of_kind(image, at, count, is_in, 0);
    }
}

SAMPLING int4 into_image(Image image, int4 at, int count) {
    at.x = into(at.x, image->width);
    if (count > 1)
        at.y = into(at.y, image->height);
    if (count > 2)
        at.z = into(at.z, image->depth);
    return at;
}

// --- reads without a sampler: outside of the image is undefined, here the nearest element ---

#define DEFINE_PLAIN_READ(T)                                                                           \
    SAMPLING T##4 read_plain_##T(Image image, int4 at, int count) {                                    \
        return load_##T(image, into_image(image, at, count), count, true);                             \
    }

// --- the nearest element ---

SAMPLING int4 with_layer(Image image, int4 at, float4 coordinate, struct Sampled how) {
    if (how.is_array && how.dims == 1)
        at.y = layer_of(coordinate.y, image->height);
    if (how.is_array && how.dims == 2)
        at.z = layer_of(coordinate.z, image->depth);
    return at;
}

SAMPLING int4 nearest(Image image, uint sampler, float4 coordinate, struct Sampled how) {
    int4 at = 0;
    at.x = nearest_place(coordinate.x, image->width, sampler);
    if (how.dims > 1)
        at.y = nearest_place(coordinate.y, image->height, sampler);
    if (how.dims > 2)
        at.z = nearest_place(coordinate.z, image->depth, sampler);
    return with_layer(image, at, coordinate, how);
}

// Where the sampler has a border. An array's layer is never outside.
SAMPLING bool is_nearest_inside(Image image, uint sampler, float4 coordinate, struct Sampled how) {
    bool is_in = is_near(coordinate.x, image->width, sampler);
    if (how.dims > 1)
        is_in &= is_near(coordinate.y, image->height, sampler);
    if (how.dims > 2)
        is_in &= is_near(coordinate.z, image->depth, sampler);
    return is_in;
}

// At integer coordinates, an array's layer is clamped with every sampler.
SAMPLING int4 with_whole_layer(Image image, int4 at, struct Sampled how) {
    if (how.is_array && how.dims == 1)
        at.y = into(at.y, image->height);
    if (how.is_array && how.dims == 2)
        at.z = into(at.z, image->depth);
    return at;
}

// The coordinates are clamped, or the address outside replaced, before the one load: lanes check at run time whether their addresses are
// consecutive, and a single work-item has no branch.
#define DEFINE_NEAREST_READS(T)                                                                        \
    SAMPLING T##4 load_or_border_##T(Image image, int4 at, int count, bool is_in) {                    \
        return chosen_##T(image, load_##T(image, at, count, is_in), is_in);                            \
    }                                                                                                  \
    SAMPLING T##4 read_nearest_##T(Image image, uint sampler, float4 coordinate, struct Sampled how) { \
        const int count = how.dims + how.is_array;                                                     \
        const int4 at = nearest(image, sampler, coordinate, how);                                      \
        if (!has_border(sampler))                                                                      \
            return load_##T(image, at, count, true);                                                   \
        return load_or_border_##T(image, at, count, is_nearest_inside(image, sampler, coordinate, how)); \
    }                                                                                                  \
    SAMPLING T##4 read_whole_##T(Image image, uint sampler, int4 place, struct Sampled how) {          \
        const int count = how.dims + how.is_array;                                                     \
        const int4 at = with_whole_layer(image, place, how);                                           \
        if (!has_border(sampler))                                                                      \
            return load_##T(image, into_image(image, at, count), count, true);                         \
        return load_or_border_##T(image, at, count, is_inside(image, at, count));                      \
    }

// --- the weighted mean of neighbours ---

SAMPLING float4 weighted(float4 low, float4 high, float fraction) { return low * (1.0f - fraction) + high * fraction; }

struct Corner {
    Image image;
    uint sampler;
    uint kind;
    int count;
};

SAMPLING float4 corner(struct Corner of, int x, int y, int z) {
    const int4 at = (int4)(x, y, z, 0);
    if (!has_border(of.sampler))
        return float_of_kind(of.image, at, of.count, true, of.kind);
    const bool is_in = is_inside(of.image, at, of.count);
    return chosen_float(of.image, float_of_kind(of.image, at, of.count, is_in, of.kind), is_in);
}

SAMPLING float4 linear_of_kind(Image image, uint sampler, float4 coordinate, struct Sampled how, uint kind) {
    const struct Corner of = {image, sampler, kind, how.dims + how.is_array};
    const int4 layer = with_layer(image, (int4)0, coordinate, how);
    const struct Neighbours x = neighbours(coordinate.x, image->width, sampler);
    if (how.dims == 1)
        return weighted(corner(of, x.low, layer.y, 0), corner(of, x.high, layer.y, 0), x.fraction);
    const struct Neighbours y = neighbours(coordinate.y, image->height, sampler);
    struct Neighbours z = {layer.z, layer.z, 0};
    if (how.dims > 2)
        z = neighbours(coordinate.z, image->depth, sampler);
    const float4 first =
        weighted(weighted(corner(of, x.low, y.low, z.low), corner(of, x.high, y.low, z.low), x.fraction),
                 weighted(corner(of, x.low, y.high, z.low), corner(of, x.high, y.high, z.low), x.fraction), y.fraction);
    if (how.dims == 2)
        return first;
    const float4 second =
        weighted(weighted(corner(of, x.low, y.low, z.high), corner(of, x.high, y.low, z.high), x.fraction),
                 weighted(corner(of, x.low, y.high, z.high), corner(of, x.high, y.high, z.high), x.fraction),
                 y.fraction);
    return weighted(first, second, z.fraction);
}

// Of any format.
ANY_FORMAT float4 polder_image_linear(Image image, uint sampler, float4 coordinate, int dims, int is_array);

SAMPLING float4 read_linear(Image image, uint sampler, float4 coordinate, struct Sampled how) {
    switch (image->kind) {
    case KIND_RGBA_FLOAT: return linear_of_kind(image, sampler, coordinate, how, KIND_RGBA_FLOAT);
    case KIND_RGBA_UNORM8: return linear_of_kind(image, sampler, coordinate, how, KIND_RGBA_UNORM8);
    case KIND_R_FLOAT: return linear_of_kind(image, sampler, coordinate, how, KIND_R_FLOAT);
    default: return polder_image_linear(image, sampler, coordinate, how.dims, how.is_array);
    }
}

DEFINE_PLAIN_READ(float)
DEFINE_PLAIN_READ(int)
DEFINE_NEAREST_READS(float)
DEFINE_NEAREST_READS(int)

SAMPLING float4 read_float(Image image, uint sampler, float4 coordinate, struct Sampled how) {
    if ((sampler & FILTER_MASK) == CLK_FILTER_LINEAR)
        return read_linear(image, sampler, coordinate, how);
    return read_nearest_float(image, sampler, coordinate, how);
}
