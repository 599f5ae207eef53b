// ImageLimits: the images that a driver's own compiler and device can use in kernels. Plain data; sizes are in elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace polder::driver {

// In the order of OpenCL's numbers, from CL_MEM_OBJECT_IMAGE2D on.
enum class ImageType : uint8_t { image_2d, image_3d, array_2d, image_1d, array_1d, buffer_1d };
inline constexpr size_t image_types = 6;

// What one kernel does with an image.
enum class ImageUse : uint8_t { read, write, read_write };
inline constexpr size_t image_uses = 3;

struct ImageFormat {
    uint32_t order = 0;  // CL_RGBA, ...
    uint32_t type = 0;  // CL_UNORM_INT8, ...
    friend bool operator==(const ImageFormat&, const ImageFormat&) = default;
};

struct ImageLimits {
    // Width, height and depth; arrays and 1D images have those of 2D images.
    std::array<uint64_t, 2> extents_2d{};
    std::array<uint64_t, 3> extents_3d{};
    uint64_t array_size = 0;
    uint64_t buffer_width = 0;
    // Of one kernel, by ImageUse.
    std::array<uint32_t, image_uses> arguments{};
    uint32_t samplers = 0;
    // By ImageUse, then by ImageType.
    std::array<std::array<std::vector<ImageFormat>, image_types>, image_uses> formats;
};

}  // namespace polder::driver
