// Checks of the arguments for creating an image: format, descriptor, and the memory object that it is created from.
#pragma once

#include <runtime/mem_object.h>

#include <CL/cl.h>
#include <polder/result.h>

namespace polder::api {

// CL_INVALID_IMAGE_FORMAT_DESCRIPTOR.
[[nodiscard]] Result<void> check_format(const cl_image_format* format);

// The memory object that the image is to be created from; null when there is none. CL_INVALID_IMAGE_DESCRIPTOR when the
// descriptor's type does not allow it, demands one, or is unknown.
[[nodiscard]] Result<runtime::MemObject*> check_source(const cl_image_desc& description);

// The extents that count for the type. CL_INVALID_IMAGE_SIZE.
[[nodiscard]] Result<void> check_extents(const cl_image_desc& description);

// Whether the descriptor may name pitches: only with a host pointer or a memory object. Those of an image from a buffer must be
// aligned.
enum class Pitches : uint8_t { none, free, aligned };
// CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_IMAGE_SIZE, CL_IMAGE_FORMAT_NOT_SUPPORTED; CL_INVALID_IMAGE_FORMAT_DESCRIPTOR when
// pitches are not aligned.
[[nodiscard]] Result<runtime::ImageShape> check_shape(const cl_image_format& format, const cl_image_desc& description,
                                                      Pitches pitches);

// An image from a buffer: CL_INVALID_IMAGE_FORMAT_DESCRIPTOR for an address that is not aligned, CL_INVALID_IMAGE_SIZE when the
// buffer is too small.
[[nodiscard]] Result<void> check_fits(const runtime::MemObject& buffer, const runtime::ImageShape& shape);
// An image from another image, with a channel order that is compatible.
[[nodiscard]] Result<runtime::ImageShape> check_view(const runtime::MemObject& image, const cl_image_format& format,
                                                     const cl_image_desc& description);

}  // namespace polder::api
