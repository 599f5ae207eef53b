// Images in programs from SPIR-V: each kernel of spirv/images.cl is built from source and from what Clang's SPIR-V backend makes
// of it, and must write the same bytes. A hand-written module has the instructions that Clang does not emit.
#include "support/modules.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <cstring>

namespace polder::test {
namespace {

struct Shape {
    const char* kernel;
    cl_mem_object_type type;
    size_t width, height, depth, layers;
    cl_channel_type channel;
};

constexpr Shape shapes[] = {
    {"plane", CL_MEM_OBJECT_IMAGE2D, 8, 8, 0, 0, CL_FLOAT},
    {"line", CL_MEM_OBJECT_IMAGE1D, 64, 0, 0, 0, CL_FLOAT},
    {"lines", CL_MEM_OBJECT_IMAGE1D_ARRAY, 8, 0, 0, 8, CL_FLOAT},
    {"planes", CL_MEM_OBJECT_IMAGE2D_ARRAY, 4, 4, 0, 4, CL_FLOAT},
    {"space", CL_MEM_OBJECT_IMAGE3D, 4, 4, 4, 0, CL_FLOAT},
    {"integers", CL_MEM_OBJECT_IMAGE2D, 8, 8, 0, 0, CL_UNSIGNED_INT32},
    {"signs", CL_MEM_OBJECT_IMAGE2D, 8, 8, 0, 0, CL_SIGNED_INT32},
};

class SpirvImages : public ModuleTest {
protected:
    OwnedMem make_image(const Shape& shape, void* host) {
        cl_image_desc description{};
        description.image_type = shape.type;
        description.image_width = shape.width;
        description.image_height = shape.height;
        description.image_depth = shape.depth;
        description.image_array_size = shape.layers;
        const cl_image_format format{CL_RGBA, shape.channel};
        cl_int error = CL_INVALID_VALUE;
        cl_mem made = clCreateImage(context, CL_MEM_READ_WRITE | (host ? CL_MEM_COPY_HOST_PTR : 0), &format,
                                    &description, host, &error);
        EXPECT_EQ(error, CL_SUCCESS) << shape.kernel;
        return made;
    }

    // What the kernel writes into an image of 64 elements.
    std::vector<cl_uint> run(cl_program program, const Shape& shape, cl_command_queue on) {
        std::vector<cl_uint> words(256);
        for (size_t i = 0; i < words.size(); ++i) {
            const auto number = static_cast<float>(i * 37 % 101) * 0.25f;
            std::memcpy(&words[i], &number, sizeof number);
        }
        OwnedMem in = make_image(shape, words.data()), out = make_image(shape, nullptr);
        cl_int error = CL_INVALID_VALUE;
        const cl_sampler_properties properties[] = {CL_SAMPLER_NORMALIZED_COORDS,
                                                    CL_FALSE,
                                                    CL_SAMPLER_ADDRESSING_MODE,
                                                    CL_ADDRESS_CLAMP_TO_EDGE,
                                                    CL_SAMPLER_FILTER_MODE,
                                                    CL_FILTER_LINEAR,
                                                    0};
        Owned<cl_sampler, clReleaseSampler> sampler = clCreateSamplerWithProperties(context, properties, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        OwnedKernel kernel = make_kernel(program, shape.kernel);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), in.in()), CL_SUCCESS) << shape.kernel;
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS) << shape.kernel;
        EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof(cl_sampler), sampler.in()), CL_SUCCESS) << shape.kernel;
        const size_t items = 64, origin[3] = {0, 0, 0};
        const size_t region[3] = {
            shape.width,
            shape.height ? shape.height
                         : std::max<size_t>(shape.type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? shape.layers : 1, 1),
            shape.depth ? shape.depth : (shape.type == CL_MEM_OBJECT_IMAGE2D_ARRAY ? shape.layers : 1)};
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clEnqueueReadImage(on, out, CL_TRUE, origin, region, 0, 0, words.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        return words;
    }
};

TEST_F(SpirvImages, KernelsWriteTheSameBytesFromSourceAndFromClangsModule) {
    OwnedProgram source = build(file(POLDER_TEST_IMAGES), "-cl-std=CL3.0");
    for (const char* module : {"images-1.0-O0", "images-1.4-O2"}) {
        OwnedProgram program = build_module(module);
        for (const cl_device_id device : devices) {
            OwnedQueue on = make_queue(device);
            for (const Shape& shape : shapes) {
                const std::vector<cl_uint> expected = run(source, shape, on);
                EXPECT_EQ(run(program, shape, on), expected) << module << ", " << shape.kernel;
                EXPECT_NE(expected, std::vector<cl_uint>(256, expected[0])) << shape.kernel;
            }
        }
    }
}

TEST_F(SpirvImages, ArgumentsAreThoseOfOpenCLC) {
    OwnedProgram program = build_module("images-1.4-O2");
    OwnedKernel kernel = make_kernel(program, "integers");
    OwnedMem volume = make_image({"", CL_MEM_OBJECT_IMAGE3D, 4, 4, 4, 0, CL_UNSIGNED_INT32}, nullptr);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), volume.in()), CL_INVALID_MEM_OBJECT);
    const auto with_flags = [&](cl_mem_flags flags) {
        const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT32};
        cl_image_desc description{};
        description.image_type = CL_MEM_OBJECT_IMAGE2D;
        description.image_width = description.image_height = 8;
        cl_int error = CL_INVALID_VALUE;
        cl_mem made = clCreateImage(context, flags, &format, &description, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return OwnedMem(made);
    };
    // read_write, write_only and a sampler.
    OwnedMem read_only = with_flags(CL_MEM_READ_ONLY), write_only = with_flags(CL_MEM_WRITE_ONLY);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), read_only.in()), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), write_only.in()), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), read_only.in()), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), write_only.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof(cl_mem), write_only.in()), CL_INVALID_SAMPLER);
}

// OpImage, OpImageQueryOrder, OpImageQueryFormat, coordinates of three numbers, uniform group operations, clocks.
TEST_F(SpirvImages, HandWrittenModuleComputesWhatItSays) {
    OwnedProgram program = build_module("image_queries");
    const Shape shape{"look", CL_MEM_OBJECT_IMAGE3D, 4, 4, 4, 0, CL_UNSIGNED_INT32};
    std::vector<cl_uint> elements(256);
    for (size_t i = 0; i < elements.size(); ++i)
        elements[i] = static_cast<cl_uint>(i);
    OwnedMem image = make_image(shape, elements.data());
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem out = make_buffer(8 * 8 * sizeof(cl_uint));
        OwnedKernel kernel = make_kernel(program, "look");
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
        const size_t items = 8;
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, &items, 0, nullptr, nullptr), CL_SUCCESS);
        const auto found = read<cl_uint>(out, 64, on);
        for (cl_uint i = 0; i < 8; ++i) {
            const std::vector<cl_uint> mine(found.begin() + i * 8, found.begin() + i * 8 + 8);
            // Order RGBA is 5, format UnsignedInt32 is 12; the element at (1, 2, 3) is number 57; the image has 4 * 4 * 4
            // elements; products of twos before the item and of all; whether all ids are small; whether the clock went back.
            cl_uint product = 1;
            for (cl_uint k = 1; k <= i; ++k)
                product *= 2;
            EXPECT_EQ(mine, (std::vector<cl_uint>{5, 12, 57 * 4, 4 + 4 + 4, product, 256, 1, 0})) << "item " << i;
        }
    }
}

}  // namespace
}  // namespace polder::test
