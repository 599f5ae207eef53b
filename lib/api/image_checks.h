// Checks of the arguments for creating an image: format, descriptor, and the memory object that it is created from.
#pragma once

#include <runtime/mem_object.h>

#include <CL/cl.h>
#include <polder/result.h>

namespace polder::api {

// CL_INVALID_IMAGE_FORMAT_DESCRIPTOR: the format is null, or its values are not valid together.
[[nodiscard]] Result<void> check_format(const cl_image_format* format);

// The memory object from which the image is created; null when there is none. CL_INVALID_IMAGE_DESCRIPTOR: the descriptor's
// type does not allow this object, or requires one, or is unknown.
[[nodiscard]] Result<runtime::MemObject*> check_source(const cl_image_desc& description);

// Checks the extents that the image type has. CL_INVALID_IMAGE_SIZE: one of them is 0 or exceeds its maximum.
[[nodiscard]] Result<void> check_extents(const cl_image_desc& description);

// Whether the descriptor may have pitches other than 0: only with a host pointer or a memory object. The pitches of an image from a
// buffer must be aligned.
enum class Pitches : uint8_t { none, free, aligned };
// CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_IMAGE_SIZE, CL_IMAGE_FORMAT_NOT_SUPPORTED; CL_INVALID_IMAGE_FORMAT_DESCRIPTOR when
// pitches are not aligned.
[[nodiscard]] Result<runtime::ImageShape> check_shape(const cl_image_format& format, const cl_image_desc& description,
                                                      Pitches pitches);

// An image from a buffer: CL_INVALID_IMAGE_FORMAT_DESCRIPTOR for an address that is not aligned, CL_INVALID_IMAGE_SIZE when the
// buffer is too small.
[[nodiscard]] Result<void> check_fits(const runtime::MemObject& buffer, const runtime::ImageShape& shape);
// Checks an image from another image, which must have the same shape and a compatible channel order.
[[nodiscard]] Result<runtime::ImageShape> check_view(const runtime::MemObject& image, const cl_image_format& format,
                                                     const cl_image_desc& description);

}  // namespace polder::api
