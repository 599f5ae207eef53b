// cl_ext_immutable_memory_objects: memory objects that nothing changes once they are there.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <numeric>

namespace polder::test {
namespace {

constexpr cl_mem_flags immutable = 1 << 6;  // CL_MEM_IMMUTABLE_EXT

class Immutable : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        bytes.resize(size);
        std::iota(bytes.begin(), bytes.end(), cl_uchar{1});
        buffer = make_buffer(size, immutable | CL_MEM_COPY_HOST_PTR, bytes.data());
        other = make_buffer(size);
    }

    cl_int buffer_error(cl_mem_flags flags, void* host) {
        cl_int error = CL_SUCCESS;
        OwnedMem made = clCreateBuffer(context, flags, size, host, &error);
        return error;
    }

    cl_int image_error(cl_mem_flags flags, void* host, cl_mem from = nullptr) {
        cl_image_desc shape{};
        shape.image_type = from ? CL_MEM_OBJECT_IMAGE1D_BUFFER : CL_MEM_OBJECT_IMAGE2D;
        shape.image_width = from ? 16 : 4;
        shape.image_height = from ? 0 : 4;
        shape.buffer = from;
        cl_int error = CL_SUCCESS;
        image = clCreateImage(context, flags, &format, &shape, host, &error);
        return error;
    }

    static constexpr size_t size = 64;
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
    std::vector<cl_uchar> bytes;
    OwnedMem buffer, other, image;
};

TEST_F(Immutable, FlagsNeedContentsAndForbidWrites) {
    for (const cl_mem_flags flags : {CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_HOST_WRITE_ONLY}) {
        EXPECT_EQ(buffer_error(immutable | CL_MEM_COPY_HOST_PTR | flags, bytes.data()), CL_INVALID_VALUE);
        EXPECT_EQ(image_error(immutable | CL_MEM_COPY_HOST_PTR | flags, bytes.data()), CL_INVALID_VALUE);
    }
    for (const cl_mem_flags flags : {cl_mem_flags{0}, cl_mem_flags{CL_MEM_ALLOC_HOST_PTR}}) {
        EXPECT_EQ(buffer_error(immutable | flags, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(image_error(immutable | flags, nullptr), CL_INVALID_VALUE);
    }
    EXPECT_EQ(buffer_error(immutable | CL_MEM_COPY_HOST_PTR, nullptr), CL_INVALID_HOST_PTR);
    EXPECT_EQ(buffer_error(immutable | CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, bytes.data()), CL_SUCCESS);
    EXPECT_EQ(buffer_error(immutable | CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_NO_ACCESS, bytes.data()), CL_SUCCESS);
    EXPECT_EQ(mem_info<cl_mem_flags>(buffer, CL_MEM_FLAGS), immutable | CL_MEM_COPY_HOST_PTR | CL_MEM_READ_ONLY);
}

TEST_F(Immutable, BuffersAreReadAndNeverWritten) {
    const size_t origin[3] = {0, 0, 0}, region[3] = {16, 2, 1};
    std::vector<cl_uchar> rows(size);
    EXPECT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, size, rows.data(), 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, origin, origin, region, 16, 0, 16, 0, rows.data(), 0,
                                       nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, other, buffer, 0, 0, size, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueCopyBufferRect(queue, other, buffer, origin, origin, region, 16, 0, 16, 0, 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, rows.data(), 1, 0, size, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    cl_int error = CL_SUCCESS;
    for (const cl_map_flags flags : {CL_MAP_WRITE, CL_MAP_WRITE | CL_MAP_READ, CL_MAP_WRITE_INVALIDATE_REGION}) {
        EXPECT_EQ(clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, 0, size, 0, nullptr, nullptr, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_OPERATION);
    }
    void* const mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, size, 0, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(static_cast<cl_uchar*>(mapped)[5], 6);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, size, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_uchar>(other, size), bytes);
    EXPECT_EQ(read<cl_uchar>(buffer, size), bytes);
}

TEST_F(Immutable, SubBuffersAndImagesOfABufferAreImmutable) {
    const size_t alignment = 128;
    std::vector<cl_uchar> more(2 * alignment, 3);
    OwnedMem parent = make_buffer(more.size(), immutable | CL_MEM_COPY_HOST_PTR, more.data());
    OwnedMem part = sub_buffer(parent, 0, alignment);
    EXPECT_TRUE(mem_info<cl_mem_flags>(part, CL_MEM_FLAGS) & immutable);
    EXPECT_EQ(clEnqueueFillBuffer(queue, part, more.data(), 1, 0, 16, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    const cl_buffer_region region{0, alignment};
    for (const cl_mem_flags flags : {CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_HOST_WRITE_ONLY}) {
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_VALUE);
    }
    EXPECT_EQ(image_error(0, nullptr, parent), CL_INVALID_VALUE);
    EXPECT_EQ(image_error(CL_MEM_READ_ONLY, nullptr, parent), CL_INVALID_VALUE);
    EXPECT_EQ(image_error(immutable, nullptr, parent), CL_SUCCESS);
    EXPECT_TRUE(mem_info<cl_mem_flags>(image, CL_MEM_FLAGS) & immutable);
}

TEST_F(Immutable, BuffersAreNoArgumentsThatAKernelWritesTo) {
    OwnedProgram program = build("kernel void copy(global const uchar* from, global uchar* plain, global uchar* to) {"
                                 "    const size_t i = get_global_id(0); to[i] = from[i] + plain[i]; }");
    OwnedKernel kernel = make_kernel(program, "copy");
    OwnedMem fixed = make_buffer(size, immutable | CL_MEM_COPY_HOST_PTR, bytes.data());
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), fixed.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), fixed.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof(cl_mem), fixed.in()), CL_INVALID_ARG_VALUE);
}

TEST_F(Immutable, ImagesAreReadAndNeverWritten) {
    ASSERT_EQ(image_error(immutable | CL_MEM_COPY_HOST_PTR, bytes.data()), CL_SUCCESS);
    OwnedMem source = std::move(image);
    ASSERT_EQ(image_error(CL_MEM_READ_WRITE, nullptr), CL_SUCCESS);
    const size_t origin[3] = {0, 0, 0}, region[3] = {4, 4, 1};
    const cl_uint color[4] = {1, 2, 3, 4};
    size_t pitch = 0;
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clEnqueueWriteImage(queue, source, CL_TRUE, origin, region, 0, 0, bytes.data(), 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueCopyImage(queue, image, source, origin, origin, region, 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueCopyBufferToImage(queue, other, source, 0, origin, region, 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, 0, 0, nullptr, nullptr),
              CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueFillImage(queue, source, color, origin, region, 0, nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clEnqueueMapImage(queue, source, CL_TRUE, CL_MAP_WRITE, origin, region, &pitch, nullptr, 0, nullptr,
                                nullptr, &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    // The flags are checked before the places of the pitches, as the Khronos suite expects.
    EXPECT_EQ(clEnqueueMapImage(queue, source, CL_TRUE, CL_MAP_WRITE, origin, region, nullptr, nullptr, 0, nullptr,
                                nullptr, &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    OwnedProgram program =
        build("kernel void reads(read_only image2d_t i) {} kernel void writes(write_only image2d_t i) {} "
              "kernel void both(read_write image2d_t i) {}",
              "-cl-std=CL3.0");
    EXPECT_EQ(clSetKernelArg(make_kernel(program, "reads"), 0, sizeof(cl_mem), source.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(make_kernel(program, "writes"), 0, sizeof(cl_mem), source.in()), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(make_kernel(program, "both"), 0, sizeof(cl_mem), source.in()), CL_INVALID_ARG_VALUE);
    std::vector<cl_uchar> found(size);
    EXPECT_EQ(clEnqueueReadImage(queue, source, CL_TRUE, origin, region, 0, 0, found.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(found, bytes);
}

TEST_F(Immutable, OtherAllocationsDoNotHaveIt) {
    EXPECT_EQ(clSVMAlloc(context, immutable | CL_MEM_READ_ONLY, size, 0), nullptr);
    cl_uint of_immutable = 0, of_read_only = 0;
    EXPECT_EQ(clGetSupportedImageFormats(context, immutable, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &of_immutable),
              CL_SUCCESS);
    EXPECT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &of_read_only),
              CL_SUCCESS);
    EXPECT_EQ(of_immutable, of_read_only);
}

} // namespace
} // namespace polder::test
