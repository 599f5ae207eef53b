#include "support/fixture.h"

namespace polder::test {
namespace {

using Absent = ContextTest;
constexpr size_t three[3] = {1, 1, 1};

TEST_F(Absent, ImagesCannotBeCreated) {
    const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = description.image_height = 4;
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateImage(context, 0, &format, &description, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    EXPECT_EQ(clCreateImageWithProperties(context, nullptr, 0, &format, &description, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    EXPECT_EQ(clCreateImage2D(context, 0, &format, 4, 4, 0, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    EXPECT_EQ(clCreateImage3D(context, 0, &format, 4, 4, 4, 0, 0, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    EXPECT_EQ(clCreateImage(foreign_handle<cl_context>(context), 0, &format, &description, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
}

TEST_F(Absent, NoImageFormatIsSupported) {
    cl_uint count = 1;
    cl_image_format format{};
    EXPECT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count),
              CL_SUCCESS);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(clGetSupportedImageFormats(foreign_handle<cl_context>(context), CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D,
                                         0, nullptr, &count),
              CL_INVALID_CONTEXT);
    EXPECT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_BUFFER, 0, nullptr, &count),
              CL_INVALID_VALUE);
    EXPECT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, &format, &count),
              CL_INVALID_VALUE);
}

TEST_F(Absent, BuffersAreNoImages) {
    OwnedMem buffer = make_buffer(64);
    size_t value = 0;
    EXPECT_EQ(clGetImageInfo(buffer, CL_IMAGE_WIDTH, sizeof value, &value, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clGetPipeInfo(buffer, CL_PIPE_PACKET_SIZE, sizeof value, &value, nullptr), CL_INVALID_MEM_OBJECT);
    char bytes[64];
    EXPECT_EQ(clEnqueueReadImage(queue, buffer, CL_TRUE, three, three, 0, 0, bytes, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueWriteImage(queue, buffer, CL_TRUE, three, three, 0, 0, bytes, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyImage(queue, buffer, buffer, three, three, three, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, buffer, buffer, three, three, 0, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyBufferToImage(queue, buffer, buffer, 0, three, three, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueFillImage(queue, buffer, bytes, three, three, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    cl_int error = CL_SUCCESS;
    size_t pitch = 0;
    EXPECT_EQ(clEnqueueMapImage(queue, buffer, CL_TRUE, CL_MAP_READ, three, three, &pitch, nullptr, 0, nullptr, nullptr,
                                &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueReadImage(foreign_handle<cl_command_queue>(context), buffer, CL_TRUE, three, three, 0, 0, bytes,
                                 0, nullptr, nullptr),
              CL_INVALID_COMMAND_QUEUE);
}

TEST_F(Absent, SamplersAndPipesCannotBeCreated) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    EXPECT_EQ(clCreateSamplerWithProperties(context, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    EXPECT_EQ(clCreatePipe(context, 0, 4, 4, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    const cl_sampler foreign = foreign_handle<cl_sampler>(context);
    cl_uint value = 0;
    EXPECT_EQ(clRetainSampler(foreign), CL_INVALID_SAMPLER);
    EXPECT_EQ(clReleaseSampler(foreign), CL_INVALID_SAMPLER);
    EXPECT_EQ(clGetSamplerInfo(foreign, CL_SAMPLER_REFERENCE_COUNT, sizeof value, &value, nullptr), CL_INVALID_SAMPLER);
}

TEST_F(Absent, FormatsOfImagesWithInvalidFlagsAreNotListed) {
    cl_uint count = 1;
    for (const cl_mem_flags flags :
         {cl_mem_flags{1} << 40, cl_mem_flags{CL_MEM_READ_WRITE} | cl_mem_flags{1} << 40,
          cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY}, cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_READ_ONLY},
          cl_mem_flags{CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS}})
        EXPECT_EQ(clGetSupportedImageFormats(context, flags, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count),
                  CL_INVALID_VALUE)
            << std::hex << flags;
    for (const cl_mem_flags flags :
         {cl_mem_flags{0}, cl_mem_flags{CL_MEM_KERNEL_READ_AND_WRITE}, cl_mem_flags{CL_MEM_READ_ONLY},
          cl_mem_flags{CL_MEM_HOST_READ_ONLY}, cl_mem_flags{CL_MEM_WRITE_ONLY | CL_MEM_ALLOC_HOST_PTR}})
        for (const cl_mem_object_type type :
             {CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE2D,
              CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE3D}) {
            EXPECT_EQ(clGetSupportedImageFormats(context, flags, type, 0, nullptr, &count), CL_SUCCESS)
                << std::hex << flags << " " << type;
            EXPECT_EQ(count, 0u);
        }
    EXPECT_EQ(clGetSupportedImageFormats(context, 0, CL_MEM_OBJECT_PIPE, 0, nullptr, &count), CL_INVALID_VALUE);
}

} // namespace
} // namespace polder::test
