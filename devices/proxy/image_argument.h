// ImageArgument: what a launch gives to a kernel's image parameter, and how an image of another implementation is made for it. Any thread.
#pragma once

#include <polder/code.h>
#include <polder/image_abi.h>
#include <proxy/foreign_context.h>

namespace polder::proxy {

struct ImageArgument {
    driver::ImageType type = driver::ImageType::image_2d;
    driver::ImageUse use = driver::ImageUse::read_write;
    ImageDescriptor descriptor{};
};

// An image object that is made for one of them does for the other, apart from pitches.
[[nodiscard]] bool have_one_shape(const ImageArgument& a, const ImageArgument& b);

// Whether they are one image, of which both may write elements.
[[nodiscard]] bool write_one_image(const ImageArgument& a, const ImageArgument& b);

// Whether an image object of the implementation can show the rows themselves, which begin at `offset` in a buffer.
[[nodiscard]] bool can_show_rows(const ForeignContext& context, const ImageArgument& argument, uint64_t offset);

// Creates an image object; `buffer` is what it shows the bytes of, or null. An OpenCL code.
[[nodiscard]] cl_int create_image(const ForeignContext& context, const ImageArgument& argument, cl_mem buffer,
                                  cl_mem& image);

}  // namespace polder::proxy
