#include "image_sample.h"

ANY_FORMAT float4 polder_image_linear(Image image, uint sampler, float4 coordinate, int dims, int is_array) {
    return linear_of_kind(image, sampler, coordinate, (struct Sampled){dims, is_array}, 0);
}
