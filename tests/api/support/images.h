// What tests of images share.
#pragma once

#include "fixture.h"

#include <array>
#include <cstring>
#include <random>

namespace polder::test {

using OwnedSampler = Owned<cl_sampler, clReleaseSampler>;
using Triple = std::array<size_t, 3>;

struct ImageType {
    cl_mem_object_type type;
    Triple extent;  // as regions have it
    const char* name;
};
// All types that need no buffer, with extents that are all different.
inline const ImageType image_types[] = {
    {CL_MEM_OBJECT_IMAGE1D, {13, 1, 1}, "1D"}, {CL_MEM_OBJECT_IMAGE1D_ARRAY, {13, 3, 1}, "1D array"},
    {CL_MEM_OBJECT_IMAGE2D, {13, 5, 1}, "2D"}, {CL_MEM_OBJECT_IMAGE2D_ARRAY, {13, 5, 3}, "2D array"},
    {CL_MEM_OBJECT_IMAGE3D, {13, 5, 4}, "3D"},
};

inline cl_image_desc describe(cl_mem_object_type type, const Triple& extent) {
    cl_image_desc description{};
    description.image_type = type;
    description.image_width = extent[0];
    switch (type) {
    case CL_MEM_OBJECT_IMAGE1D_ARRAY: description.image_array_size = extent[1]; break;
    case CL_MEM_OBJECT_IMAGE2D: description.image_height = extent[1]; break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        description.image_height = extent[1];
        description.image_array_size = extent[2];
        break;
    case CL_MEM_OBJECT_IMAGE3D:
        description.image_height = extent[1];
        description.image_depth = extent[2];
        break;
    default: break;
    }
    return description;
}

class ImageTest : public ContextTest {
protected:
    OwnedMem make_image(const cl_image_format& format, const cl_image_desc& description,
                        cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
        cl_int error = CL_INVALID_VALUE;
        const cl_mem made = clCreateImage(context, flags, &format, &description, host, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    OwnedMem make_image(const ImageType& type, const cl_image_format& format = {CL_RGBA, CL_UNSIGNED_INT8}) {
        return make_image(format, describe(type.type, type.extent));
    }
    cl_int creation_error(const cl_image_format* format, const cl_image_desc* description,
                          cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
        cl_int error = CL_SUCCESS;
        const OwnedMem made = clCreateImage(context, flags, format, description, host, &error);
        EXPECT_EQ(made == nullptr, error != CL_SUCCESS);
        return error;
    }

    template <class... Arguments>
    void set_arguments(cl_kernel kernel, const Arguments&... arguments) {
        cl_uint index = 0;
        const auto set = [&](const auto& value) {
            EXPECT_EQ(clSetKernelArg(kernel, index++, sizeof(value), &value), CL_SUCCESS);
        };
        (set(arguments), ...);
    }

    template <class T>
    T image_info(cl_mem image, cl_image_info name) {
        T value{};
        EXPECT_EQ(clGetImageInfo(image, name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }

    void write_image(cl_mem image, const Triple& origin, const Triple& region, const void* elements,
                     cl_command_queue to = nullptr) {
        EXPECT_EQ(clEnqueueWriteImage(to ? to : static_cast<cl_command_queue>(queue), image, CL_TRUE, origin.data(),
                                      region.data(), 0, 0, elements, 0, nullptr, nullptr),
                  CL_SUCCESS);
    }
    template <class T = uint8_t>
    std::vector<T> read_image(cl_mem image, const Triple& origin, const Triple& region,
                              cl_command_queue from = nullptr) {
        const size_t element = image_info<size_t>(image, CL_IMAGE_ELEMENT_SIZE);
        std::vector<T> values(region[0] * region[1] * region[2] * element / sizeof(T));
        EXPECT_EQ(clEnqueueReadImage(from ? from : static_cast<cl_command_queue>(queue), image, CL_TRUE, origin.data(),
                                     region.data(), 0, 0, values.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        return values;
    }

    std::vector<uint8_t> random_bytes(size_t size) {
        std::vector<uint8_t> values(size);
        for (uint8_t& value : values)
            value = static_cast<uint8_t>(random_());
        return values;
    }

    std::mt19937 random_{1};
};

}  // namespace polder::test
