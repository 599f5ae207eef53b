// An image argument of a kernel: a descriptor within the packed arguments. The kernel's parameter points to the descriptor.
// Generated code depends on this layout through lib/kernel/cl/image.h: change both together and increment
// `kernel_abi_version` (kernel_abi.h) and `ptx_abi_version` (ptx_abi.h).
//
// A sampler argument is 8 bytes: the sum of the values of CLK_NORMALIZED_COORDS_*, CLK_ADDRESS_* and CLK_FILTER_* as in a sampler of
// OpenCL C.
#pragma once

#include <cstdint>

namespace polder {

// Pitches are in bytes, extents in elements.
struct ImageDescriptor {
    uint64_t data;  // address of the first element; filled in by the launch
    uint64_t row_pitch;  // the distance of rows; in a 1D array, of layers
    uint64_t slice_pitch;  // the distance of slices; in a 2D array, of layers
    // The extents in the order of the coordinates. After an array's last dimension comes its number of layers. Unused ones are 1.
    int32_t width;
    int32_t height;
    int32_t depth;
    uint32_t channel_order;  // CL_RGBA, ...
    uint32_t channel_type;  // CL_UNORM_INT8, ...
    uint32_t element_bytes;
    uint32_t kind;  // an ImageKind
    uint32_t reserved;
};
static_assert(sizeof(ImageDescriptor) == 56 && alignof(ImageDescriptor) == 8);

// Formats that kernels read and write with inlined code; functions handle the other formats.
enum class ImageKind : uint32_t {
    other = 0,
    rgba_float = 1,
    rgba_unorm8 = 2,
    rgba_int32 = 3,  // signed or unsigned
    rgba_uint8 = 4,
    r_float = 5,
    r_unorm8 = 6,
};

}  // namespace polder
