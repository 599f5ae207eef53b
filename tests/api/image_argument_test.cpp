// Images and samplers as kernel arguments: what clSetKernelArg checks, and what kernels learn of an image.
#include "support/images.h"

namespace polder::test {
namespace {

class ImageArguments : public ImageTest {
protected:
    void run(cl_kernel kernel, size_t count = 1, cl_command_queue on = nullptr) {
        ASSERT_EQ(clEnqueueNDRangeKernel(on ? on : static_cast<cl_command_queue>(queue), kernel, 1, nullptr, &count,
                                         nullptr, 0, nullptr, nullptr),
                  CL_SUCCESS);
    }
};

constexpr const char* copy_source = R"(
    constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    kernel void copy(read_only image2d_t from, write_only image2d_t to) {
        int2 at = (int2)(get_global_id(0) % 13, get_global_id(0) / 13);
        write_imageui(to, at, read_imageui(from, plain, at) + 1);
    }
    kernel void sampled(read_only image2d_t from, sampler_t sampler, global float4* to) {
        *to = read_imagef(from, sampler, (float2)(0.5f, 0.5f));
    }
    kernel void unused(read_only image2d_t from, global int* to) { *to = 7; }
)";

TEST_F(ImageArguments, AreChecked) {
    const OwnedProgram program = build(copy_source);
    const OwnedKernel copy = make_kernel(program, "copy");
    const OwnedKernel sampled = make_kernel(program, "sampled");
    const OwnedMem image = make_image(image_types[2]);
    const OwnedMem array = make_image(image_types[3]);
    const OwnedMem buffer = make_buffer(64);
    EXPECT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem) + 1, image.in()), CL_INVALID_ARG_SIZE);
    EXPECT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem), nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem), buffer.in()), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem), array.in()), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clSetKernelArg(sampled, 2, sizeof(cl_mem), image.in()), CL_INVALID_MEM_OBJECT);
    const cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {8, 4, 1});
    const OwnedMem read_only = make_image({CL_RGBA, CL_UNSIGNED_INT8}, description, CL_MEM_READ_ONLY);
    const OwnedMem write_only = make_image({CL_RGBA, CL_UNSIGNED_INT8}, description, CL_MEM_WRITE_ONLY);
    EXPECT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem), write_only.in()), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(copy, 1, sizeof(cl_mem), read_only.in()), CL_INVALID_ARG_VALUE);
    cl_int error = CL_SUCCESS;
    const OwnedSampler sampler = clCreateSamplerWithProperties(context, nullptr, &error);
    EXPECT_EQ(clSetKernelArg(sampled, 1, sizeof(cl_sampler), sampler.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(sampled, 1, sizeof(cl_sampler) - 1, sampler.in()), CL_INVALID_ARG_SIZE);
    EXPECT_EQ(clSetKernelArg(sampled, 1, sizeof(cl_sampler), nullptr), CL_INVALID_SAMPLER);
    EXPECT_EQ(clSetKernelArg(sampled, 1, sizeof(cl_sampler), buffer.in()), CL_INVALID_SAMPLER);
}

TEST_F(ImageArguments, KernelsReadAndWriteOnEveryDevice) {
    const OwnedProgram program = build(copy_source);
    const OwnedKernel copy = make_kernel(program, "copy");
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        const OwnedMem from = make_image(image_types[2]);
        const OwnedMem to = make_image(image_types[2]);
        std::vector<uint8_t> bytes = random_bytes(13 * 5 * 4);
        write_image(from, {0, 0, 0}, {13, 5, 1}, bytes.data());
        ASSERT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem), from.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(copy, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
        run(copy, 65, on);
        for (uint8_t& byte : bytes)
            byte = byte == 255 ? byte : static_cast<uint8_t>(byte + 1);
        EXPECT_EQ(read_image(to, {0, 0, 0}, {13, 5, 1}, on), bytes);
    }
}

TEST_F(ImageArguments, ReleasedImagesAreReportedAtTheLaunch) {
    const OwnedProgram program = build(copy_source);
    const OwnedKernel copy = make_kernel(program, "copy");
    const OwnedMem to = make_image(image_types[2]);
    {
        const OwnedMem from = make_image(image_types[2]);
        ASSERT_EQ(clSetKernelArg(copy, 0, sizeof(cl_mem), from.in()), CL_SUCCESS);
    }
    ASSERT_EQ(clSetKernelArg(copy, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
    const size_t one = 1;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, copy, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
              CL_INVALID_KERNEL_ARGS);
    // The handle may be that of a buffer by now.
    const OwnedMem buffer = make_buffer(64);
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, copy, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
              CL_INVALID_KERNEL_ARGS);
}

TEST_F(ImageArguments, KernelsKnowExtentsAndFormat) {
    struct Case {
        const char* type;
        const char* code;
        std::vector<int> expected;
        size_t image;
    };
    const Case cases[] = {
        {"image1d_t", "", {}, 0},
        {"image1d_array_t", "*to++ = get_image_array_size(image);", {3}, 1},
        {"image2d_t", "*to++ = get_image_height(image); *to++ = get_image_dim(image).y;", {5, 5}, 2},
        {"image2d_array_t", "*to++ = get_image_height(image); *to++ = get_image_array_size(image);", {5, 3}, 3},
        {"image3d_t",
         "*to++ = get_image_height(image); *to++ = get_image_depth(image); int4 d = get_image_dim(image);"
         "*to++ = d.x; *to++ = d.y; *to++ = d.z; *to++ = d.w;",
         {5, 4, 13, 5, 4, 0},
         4},
    };
    for (const Case& each : cases)
        for (const char* access : {"read_only", "write_only", "read_write"}) {
            SCOPED_TRACE(std::string(access) + " " + each.type);
            const OwnedProgram program = build("kernel void ask(" + std::string(access) + " " + each.type +
                                                   " image, global int* to) { *to++ = get_image_width(image);"
                                                   "*to++ = get_image_channel_order(image) == CLK_RGBA;"
                                                   "*to++ = get_image_channel_data_type(image) == CLK_UNSIGNED_INT8;" +
                                                   each.code + "}",
                                               "-cl-std=CL3.0");
            const OwnedKernel kernel = make_kernel(program, "ask");
            const OwnedMem image = make_image(image_types[each.image]);
            const OwnedMem to = make_buffer(64);
            ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
            run(kernel);
            std::vector<int> expected{13, 1, 1};
            expected.insert(expected.end(), each.expected.begin(), each.expected.end());
            EXPECT_EQ(read<int>(to, expected.size()), expected);
        }
}

TEST_F(ImageArguments, NeedNotBeUsed) {
    const OwnedProgram program = build(copy_source);
    const OwnedKernel kernel = make_kernel(program, "unused");
    const OwnedMem to = make_buffer(4);
    const OwnedMem image = make_image(image_types[2]);
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
    run(kernel);
    EXPECT_EQ(read<int>(to, 1)[0], 7);
}

TEST_F(ImageArguments, OneKernelReadsAndWrites) {
    const OwnedProgram program = build(R"(
        kernel void twice(read_write image2d_t image, read_write image1d_buffer_t line) {
            int2 at = (int2)(get_global_id(0) % 13, get_global_id(0) / 13);
            write_imageui(image, at, read_imageui(image, at) * 2);
            atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);
            write_imageui(line, get_global_id(0), read_imageui(image, at));
        })",
                                       "-cl-std=CL3.0");
    const OwnedKernel kernel = make_kernel(program, "twice");
    const OwnedMem image = make_image(image_types[2]);
    std::vector<uint8_t> bytes(13 * 5 * 4);
    for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<uint8_t>(i % 100);
    write_image(image, {0, 0, 0}, {13, 5, 1}, bytes.data());
    const OwnedMem buffer = make_buffer(bytes.size());
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
    description.image_width = 65;
    description.buffer = buffer;
    const OwnedMem line = make_image({CL_RGBA, CL_UNSIGNED_INT8}, description, 0);
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), line.in()), CL_SUCCESS);
    run(kernel, 65);
    for (uint8_t& byte : bytes)
        byte = static_cast<uint8_t>(byte * 2);
    EXPECT_EQ(read_image(image, {0, 0, 0}, {13, 5, 1}), bytes);
    EXPECT_EQ(read<uint8_t>(buffer, bytes.size()), bytes);
}

TEST_F(ImageArguments, WritesOutsideDoNothing) {
    const OwnedProgram program = build(R"(
        kernel void around(write_only image2d_t image) {
            int2 at = (int2)((int)(get_global_id(0) % 20) - 3, (int)(get_global_id(0) / 20) - 2);
            write_imageui(image, at, (uint4)(9));
        })");
    const OwnedKernel kernel = make_kernel(program, "around");
    const OwnedMem image = make_image({CL_RGBA, CL_UNSIGNED_INT8}, describe(CL_MEM_OBJECT_IMAGE2D, {13, 5, 1}));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
    run(kernel, 20 * 9);
    EXPECT_EQ(read_image(image, {0, 0, 0}, {13, 5, 1}), std::vector<uint8_t>(13 * 5 * 4, 9));
}

TEST_F(ImageArguments, AreDescribedByArgumentQueries) {
    const OwnedProgram program = build(copy_source, "-cl-kernel-arg-info");
    const OwnedKernel copy = make_kernel(program, "copy");
    cl_kernel_arg_access_qualifier access = 0;
    EXPECT_EQ(clGetKernelArgInfo(copy, 0, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access, nullptr), CL_SUCCESS);
    EXPECT_EQ(access, cl_kernel_arg_access_qualifier{CL_KERNEL_ARG_ACCESS_READ_ONLY});
    EXPECT_EQ(clGetKernelArgInfo(copy, 1, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access, nullptr), CL_SUCCESS);
    EXPECT_EQ(access, cl_kernel_arg_access_qualifier{CL_KERNEL_ARG_ACCESS_WRITE_ONLY});
    char name[32] = {};
    EXPECT_EQ(clGetKernelArgInfo(copy, 1, CL_KERNEL_ARG_TYPE_NAME, sizeof name, name, nullptr), CL_SUCCESS);
    EXPECT_STREQ(name, "image2d_t");
}

} // namespace
} // namespace polder::test
