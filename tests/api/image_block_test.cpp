// Blocks of a sub-group in images (cl_intel_subgroups), from source and from SPIR-V: which bytes a block is made of, at the image's
// edges too.
#include "support/modules.h"

#include <algorithm>
#include <cstring>

namespace polder::test {
namespace {

constexpr int width = 37, height = 20, row_bytes = 4 * width, items = 16;

class ImageBlock : public ModuleTest, public ::testing::WithParamInterface<const char*> {
protected:
    void SetUp() override {
        ModuleTest::SetUp();
        program = *GetParam() == 0 ? build(file(POLDER_TEST_IMAGE_BLOCKS), "-cl-std=CL3.0") : build_module(GetParam());
        for (size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<cl_uchar>(i * 7 + i / row_bytes);
        const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
        cl_image_desc description{};
        description.image_type = CL_MEM_OBJECT_IMAGE2D;
        description.image_width = width;
        description.image_height = height;
        cl_int error = CL_INVALID_VALUE;
        image = clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &description, bytes.data(),
                              &error);
        ASSERT_EQ(error, CL_SUCCESS);
    }
    // `size` bytes at (x, y), or nearest to it within the image.
    [[nodiscard]] cl_ulong at(int x, int y, int size) const {
        x = std::clamp(x, 0, row_bytes - size);
        y = std::clamp(y, 0, height - 1);
        cl_ulong value = 0;
        std::memcpy(&value, &bytes[static_cast<size_t>(y) * row_bytes + static_cast<size_t>(x)],
                    static_cast<size_t>(size));
        return value;
    }
    void write_at(int x, int y, int size, cl_ulong value) {
        if (x >= 0 && x + size <= row_bytes && y >= 0 && y < height)
            std::memcpy(&bytes[static_cast<size_t>(y) * row_bytes + static_cast<size_t>(x)], &value,
                        static_cast<size_t>(size));
    }
    [[nodiscard]] int lanes(cl_kernel kernel) const {
        const size_t local = items;
        size_t size = 0;
        EXPECT_EQ(clGetKernelSubGroupInfo(kernel, devices[0], CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, sizeof local,
                                          &local, sizeof size, &size, nullptr),
                  CL_SUCCESS);
        EXPECT_GT(size, 0u);
        return static_cast<int>(std::max<size_t>(size, 1));
    }
    void launch(cl_kernel kernel) {
        const size_t global = items, local = items;
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
    }

    OwnedProgram program;
    OwnedMem image;
    std::vector<cl_uchar> bytes = std::vector<cl_uchar>(size_t{row_bytes} * height);
};

TEST_P(ImageBlock, ReadsAreTheBytesFromTheCoordinateOn) {
    struct Part {
        int size, rows;
    };
    constexpr Part parts[] = {{4, 1}, {4, 8}, {2, 1}, {2, 16}, {1, 2}, {1, 16}, {8, 1}, {8, 4}};
    OwnedKernel kernel = clCreateKernel(program, "reads", nullptr);
    std::vector<cl_ulong> found(size_t{items} * 49);
    OwnedMem out = make_buffer(found.size() * 8);
    const cl_int places[][2] = {{0, 0}, {4, 2}, {5, 3}, {130, 15}, {-20, -2}, {1000, 1000}};
    for (const auto& [x, y] : places) {
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 2, sizeof x, &x), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 3, sizeof y, &y), CL_SUCCESS);
        launch(kernel);
        ASSERT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, found.size() * 8, found.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        size_t next = 0;
        for (int item = 0; item < items; ++item)
            for (const Part& part : parts)
                for (int row = 0; row < part.rows; ++row)
                    ASSERT_EQ(found[next++], at(x + item % lanes(kernel) * part.size, y + row, part.size))
                        << "block at (" << x << ", " << y << "), work-item " << item << ", row " << row << " of "
                        << part.rows << ", elements of " << part.size << " bytes";
    }
}

TEST_P(ImageBlock, WritesChangeTheBytesFromTheCoordinateOnWithinTheImage) {
    OwnedKernel kernel = clCreateKernel(program, "writes", nullptr);
    const cl_int places[][2] = {{0, 0}, {8, 3}, {132, 14}, {-8, -3}, {-1000, 5}};
    for (const auto& [x, y] : places) {
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof x, &x), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 2, sizeof y, &y), CL_SUCCESS);
        launch(kernel);
        for (int lane = 0; lane < lanes(kernel); ++lane) {
            const auto number = static_cast<cl_uint>(lane + 1);
            for (int row = 0; row < 8; ++row)
                write_at(x + 4 * lane, y + row, 4, static_cast<cl_uint>(row + 1) * 0x1010101u + number * 0x20000000u);
            write_at(x + 2 * lane, y + 8, 2, number * 0x101u);
            write_at(x + lane, y + 9, 1, number);
            write_at(x + lane, y + 10, 1, 0xf0 + number);
        }
        std::vector<cl_uchar> found(bytes.size());
        const size_t origin[3] = {0, 0, 0}, region[3] = {width, height, 1};
        ASSERT_EQ(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, found.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        for (size_t i = 0; i < bytes.size(); ++i)
            ASSERT_EQ(found[i], bytes[i])
                << "byte " << i % row_bytes << " of row " << i / row_bytes << ", block at (" << x << ", " << y << ")";
    }
}

INSTANTIATE_TEST_SUITE_P(Programs, ImageBlock, ::testing::Values("", "image_blocks-1.0-O0", "image_blocks-1.4-O2"));

}  // namespace
}  // namespace polder::test
