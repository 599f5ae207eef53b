#include "image_sample.h"

COLOR_FUNCTION(float, polder_image_linear, Image image, uint sampler, float x, float y, float z, int dims,
               int is_array) {
    RETURN_COLOR(linear_of_kind(image, sampler, (float4)(x, y, z, 0), (struct Sampled){dims, is_array}, 0));
}
