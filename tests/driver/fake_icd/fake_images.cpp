// Images and samplers. An image's rows are apart, so that its bytes are never those of a buffer's rows by accident.
#include "fake_functions.h"

#include <cstring>
#include <mutex>
#include <polder/image_abi.h>

using namespace polder::fake_icd;

namespace {

constexpr size_t gap_bytes = 48;  // behind each row
constexpr cl_image_format known_formats[] = {{CL_RGBA, CL_UNSIGNED_INT8}, {CL_RGBA, CL_FLOAT}, {CL_R, CL_FLOAT}};

cl_int CL_API_CALL supported_formats(cl_context, cl_mem_flags flags, cl_mem_object_type type, cl_uint capacity,
                                     cl_image_format* to, cl_uint* count) {
    if (const cl_int code = enter("clGetSupportedImageFormats"))
        return code;
    // The last one is only read, and no 1D array has it.
    const bool reads = (flags & CL_MEM_READ_ONLY) != 0;
    const cl_uint there = reads && type != CL_MEM_OBJECT_IMAGE1D_ARRAY ? 3 : 2;
    if (count)
        *count = there;
    for (cl_uint i = 0; to && i < std::min(capacity, there); ++i)
        to[i] = known_formats[i];
    return CL_SUCCESS;
}

cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                const cl_image_desc* description, void*, cl_int* code) {
    *code = enter("clCreateImage");
    if (*code)
        return nullptr;
    auto image = std::make_unique<_cl_mem>(context);
    image->type = description->image_type;
    image->image_flags = flags;
    polder::ImageDescriptor& shape = image->image;
    shape.element_bytes =
        format->image_channel_data_type == CL_FLOAT && format->image_channel_order == CL_RGBA ? 16 : 4;
    shape.channel_order = format->image_channel_order;
    shape.channel_type = format->image_channel_data_type;
    const auto at_least_1 = [](size_t extent) { return static_cast<int32_t>(std::max<size_t>(extent, 1)); };
    const bool is_1d_array = description->image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    const bool is_2d_array = description->image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
    shape.width = at_least_1(description->image_width);
    shape.height = at_least_1(is_1d_array ? description->image_array_size : description->image_height);
    shape.depth = at_least_1(is_2d_array ? description->image_array_size : description->image_depth);
    const size_t row = static_cast<size_t>(shape.width) * shape.element_bytes;
    if (description->mem_object) {
        shape.row_pitch = description->image_row_pitch ? description->image_row_pitch : row;
        if (description->mem_object->size < shape.row_pitch * (static_cast<size_t>(shape.height) - 1) + row) {
            *code = CL_INVALID_IMAGE_SIZE;
            return nullptr;
        }
        image->bytes = description->mem_object->bytes;
        image->origin = description->mem_object->origin;
    } else {
        shape.row_pitch = row + gap_bytes;
        image->bytes = std::make_shared<std::vector<std::byte>>(shape.row_pitch * static_cast<size_t>(shape.height) *
                                                                static_cast<size_t>(shape.depth));
    }
    shape.slice_pitch = shape.row_pitch * static_cast<size_t>(shape.height);
    image->size = image->bytes->size() - image->origin;
    return image.release();
}

bool is_inside(cl_mem image, const size_t* origin, const size_t* region) {
    const int32_t extents[] = {image->image.width, image->image.height, image->image.depth};
    for (int d = 0; d < 3; ++d)
        if (region[d] == 0 || origin[d] + region[d] > static_cast<size_t>(extents[d]))
            return false;
    return true;
}

// Calls copy(place in the image, offset in tight rows, bytes) for each row of a region.
template <class Copy>
void for_each_row(const _cl_mem& image, const size_t* origin, const size_t* region, Copy&& copy) {
    const polder::ImageDescriptor& shape = image.image;
    const size_t bytes = region[0] * shape.element_bytes;
    for (size_t z = 0; z < region[2]; ++z)
        for (size_t y = 0; y < region[1]; ++y)
            copy(image.data() + (origin[2] + z) * shape.slice_pitch + (origin[1] + y) * shape.row_pitch +
                     origin[0] * shape.element_bytes,
                 (z * region[1] + y) * bytes, bytes);
}

struct Part {
    size_t origin[3];
    size_t region[3];
    Part(const size_t* from, const size_t* size) {
        std::memcpy(origin, from, sizeof origin);
        std::memcpy(region, size, sizeof region);
    }
    [[nodiscard]] size_t bytes(cl_mem image) const {
        return region[0] * region[1] * region[2] * image->image.element_bytes;
    }
};

cl_int CL_API_CALL copy_in(cl_command_queue queue, cl_mem buffer, cl_mem image, size_t offset, const size_t* origin,
                           const size_t* region, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueCopyBufferToImage"))
        return code;
    const Part part(origin, region);
    if (!is_inside(image, origin, region) || offset + part.bytes(image) > buffer->size)
        return CL_INVALID_VALUE;
    return enqueue(queue, {count, waits, done}, [from = keep(buffer), to = keep(image), offset, part] {
        for_each_row(*to, part.origin, part.region, [&](std::byte* place, size_t at, size_t bytes) {
            std::memcpy(place, from->data() + offset + at, bytes);
        });
    });
}
cl_int CL_API_CALL copy_out(cl_command_queue queue, cl_mem image, cl_mem buffer, const size_t* origin,
                            const size_t* region, size_t offset, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueCopyImageToBuffer"))
        return code;
    const Part part(origin, region);
    if (!is_inside(image, origin, region) || offset + part.bytes(image) > buffer->size)
        return CL_INVALID_VALUE;
    return enqueue(queue, {count, waits, done}, [from = keep(image), to = keep(buffer), offset, part] {
        for_each_row(*from, part.origin, part.region, [&](const std::byte* place, size_t at, size_t bytes) {
            std::memcpy(to->data() + offset + at, place, bytes);
        });
    });
}

cl_sampler CL_API_CALL create_sampler(cl_context context, cl_bool normalized, cl_addressing_mode addressing,
                                      cl_filter_mode filter, cl_int* code) {
    *code = enter("clCreateSampler");
    if (*code)
        return nullptr;
    auto* const sampler = new _cl_sampler(context);
    sampler->bits = (normalized ? 1u : 0u) | (addressing == CL_ADDRESS_NONE ? 0 : (addressing - CL_ADDRESS_NONE) * 2) |
                    (filter == CL_FILTER_LINEAR ? 0x20 : 0x10);
    return sampler;
}
cl_int CL_API_CALL release_sampler(cl_sampler sampler) {
    release(sampler);
    return CL_SUCCESS;
}

}  // namespace

void add_image_functions(cl_icd_dispatch& table) {
    table.clGetSupportedImageFormats = guarded<supported_formats>;
    table.clCreateImage = guarded<create_image>;
    table.clEnqueueCopyBufferToImage = guarded<copy_in>;
    table.clEnqueueCopyImageToBuffer = guarded<copy_out>;
    table.clCreateSampler = guarded<create_sampler>;
    table.clReleaseSampler = guarded<release_sampler>;
}
