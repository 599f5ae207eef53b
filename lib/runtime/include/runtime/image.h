// ImageShape: the type, format, extents and pitches of an image. An image's elements are rows of a storage,
// like a buffer's bytes, so that all image commands are commands on rectangles of bytes.
//
// Values; any thread. Sizes and pitches are in bytes, extents in elements.
#pragma once

#include <memory/domain.h>

#include <CL/cl.h>
#include <array>
#include <optional>
#include <polder/image_abi.h>
#include <span>
#include <vector>

namespace polder::runtime {

// CL_DEVICE_IMAGE*_MAX_* of devices whose code Polder's compiler makes; others may have less (device_images.h).
inline constexpr size_t image_2d_extent_max = 16384;
inline constexpr size_t image_3d_extent_max = 2048;
inline constexpr size_t image_array_size_max = 2048;
inline constexpr size_t image_buffer_width_max = size_t{1} << 27;
inline constexpr cl_uint image_arguments_max = 128;
inline constexpr cl_uint samplers_max = 64;
// CL_DEVICE_IMAGE_PITCH_ALIGNMENT and CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, in elements: any element may begin a row.
inline constexpr cl_uint image_alignment_elements = 1;

// The bytes of one element; std::nullopt when the order or type is unknown, the specification excludes the combination, or
// the number of bits of an element is not a power of two.
[[nodiscard]] std::optional<uint32_t> element_bytes(const cl_image_format& format);

// The formats for images of this type with which kernels can do what `flags` say (clGetSupportedImageFormats).
[[nodiscard]] std::vector<cl_image_format> supported_formats(cl_mem_flags flags, cl_mem_object_type type);
[[nodiscard]] bool is_supported(const cl_image_format& format, cl_mem_object_type type);

[[nodiscard]] constexpr bool is_image_type(cl_mem_object_type type) {
    return type >= CL_MEM_OBJECT_IMAGE2D && type <= CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

// Width, height, depth and array size, in elements; 0 where the image type has none.
struct ImageExtents {
    size_t width = 0;
    size_t height = 0;
    size_t depth = 0;
    size_t array_size = 0;
    friend bool operator==(const ImageExtents&, const ImageExtents&) = default;
};
[[nodiscard]] ImageExtents largest_extents(cl_mem_object_type type);

struct ImageShape {
    cl_mem_object_type type = CL_MEM_OBJECT_IMAGE2D;
    cl_image_format format{};
    uint32_t element_bytes = 0;
    ImageExtents extents;  // 0 where the type has none
    size_t row_pitch = 0;
    size_t slice_pitch = 0;  // 0 where the type has neither slices nor layers

    // The extents in the order of origins and regions; each at least 1.
    [[nodiscard]] std::array<size_t, 3> region() const;
    // The layers of a 1D array are rows here.
    [[nodiscard]] driver::RectLayout layout() const;
    [[nodiscard]] uint64_t size() const;
    [[nodiscard]] ImageDescriptor descriptor() const;
    // The bytes of a region of the image. The offset counts from the image's first byte.
    [[nodiscard]] memory::StorageRect rect(const size_t* origin, const size_t* region) const;
};

// Converts the color of clEnqueueFillImage (four floats, ints or unsigned ints, or one float for a depth image) to one element of
// `format`.
struct ImageElement {
    std::array<std::byte, 16> bytes{};
    uint32_t size = 0;
    [[nodiscard]] std::span<const std::byte> span() const { return std::span(bytes).first(size); }
};
[[nodiscard]] ImageElement element_of_color(const cl_image_format& format, const void* color);

}  // namespace polder::runtime
