// get_image_* (OpenCL C 3.0, section 6.15.15.5).
#include "image.h"

#define FOR_EACH_ACCESS(MACRO, TYPE) MACRO(read_only TYPE) MACRO(write_only TYPE) MACRO(read_write TYPE)

#define DEFINE_COMMON(TYPE)                                                                            \
    BUILTIN int get_image_width(TYPE image) { return polder_image(image)->width; }                     \
    BUILTIN int get_image_channel_data_type(TYPE image) { return polder_image(image)->channel_type; }  \
    BUILTIN int get_image_channel_order(TYPE image) { return polder_image(image)->channel_order; }
FOR_ONE_ACCESS(DEFINE_COMMON, read_only)
FOR_ONE_ACCESS(DEFINE_COMMON, write_only)
FOR_ONE_ACCESS(DEFINE_COMMON, read_write)

#define DEFINE_2D(TYPE)                                                                                \
    BUILTIN int get_image_height(TYPE image) { return polder_image(image)->height; }                   \
    BUILTIN int2 get_image_dim(TYPE image) {                                                           \
        return (int2)(polder_image(image)->width, polder_image(image)->height);                        \
    }
FOR_EACH_ACCESS(DEFINE_2D, image2d_t)
FOR_EACH_ACCESS(DEFINE_2D, image2d_depth_t)
FOR_EACH_ACCESS(DEFINE_2D, image2d_array_t)
FOR_EACH_ACCESS(DEFINE_2D, image2d_array_depth_t)

#define DEFINE_3D(TYPE)                                                                                \
    BUILTIN int get_image_height(TYPE image) { return polder_image(image)->height; }                   \
    BUILTIN int get_image_depth(TYPE image) { return polder_image(image)->depth; }                     \
    BUILTIN int4 get_image_dim(TYPE image) {                                                           \
        return (int4)(polder_image(image)->width, polder_image(image)->height, polder_image(image)->depth, 0); \
    }
FOR_EACH_ACCESS(DEFINE_3D, image3d_t)

#define DEFINE_1D_ARRAY(TYPE)                                                                          \
    BUILTIN size_t get_image_array_size(TYPE image) { return polder_image(image)->height; }
FOR_EACH_ACCESS(DEFINE_1D_ARRAY, image1d_array_t)

#define DEFINE_2D_ARRAY(TYPE)                                                                          \
    BUILTIN size_t get_image_array_size(TYPE image) { return polder_image(image)->depth; }
FOR_EACH_ACCESS(DEFINE_2D_ARRAY, image2d_array_t)
FOR_EACH_ACCESS(DEFINE_2D_ARRAY, image2d_array_depth_t)
