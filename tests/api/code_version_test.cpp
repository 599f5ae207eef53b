// Which versions of a kernel are made: by sizes of work-groups and formats of images, and by how many work-items launches had without them.
// POCL_DEBUG=compiler reports each code that is made; the cache and early code are off.
#include "support/images.h"
#include "support/made_code.h"
#include "support/native_kernels.h"

#include <algorithm>
#include <memory>

namespace polder::test {
namespace {

constexpr cl_channel_type type = CL_UNORM_INT8;
constexpr size_t side = 512;  // two launches of a square have as many work-items as a version needs

class CodeVersion : public ImageTest {
protected:
    void SetUp() override {
        ImageTest::SetUp();
        if (!executes_native_kernels(devices[0]))
            GTEST_SKIP() << "only code for the host's processors is reported in a line";
        code_ = std::make_unique<MadeCode>();
    }
    [[nodiscard]] size_t made(const std::string& name) const { return code_->made(name); }

    // kernel(global int* a) over `global` work-items; each must write the size of its group, which is smaller at the end of the range.
    void run_sized(cl_kernel kernel, size_t global, size_t local) {
        const OwnedMem buffer = make_buffer(global * sizeof(cl_int));
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        const auto found = read<cl_int>(buffer, global);
        for (size_t i = 0; i < global; ++i)
            ASSERT_EQ(found[i], static_cast<cl_int>(i / local < global / local ? local : global % local)) << i;
    }
    // What kernel(image, global float4*, int row) wrote for each element.
    std::vector<cl_float4> launch(cl_kernel kernel, cl_mem image, size_t width, size_t height, const size_t* local,
                                  int times) {
        const OwnedMem to = make_buffer(width * height * sizeof(cl_float4));
        const auto row = static_cast<cl_int>(width);
        const size_t global[] = {width, height};
        if (clSetKernelArg(kernel, 0, sizeof(cl_mem), &image) || clSetKernelArg(kernel, 1, sizeof(cl_mem), to.in()) ||
            clSetKernelArg(kernel, 2, sizeof row, &row))
            return {};
        for (int i = 0; i < times; ++i)
            if (clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, global, local, 0, nullptr, nullptr))
                return {};
        return read<cl_float4>(to, width * height);
    }
    // Copies a random image of the order, which must be what is read.
    void run_copy(cl_kernel kernel, cl_channel_order order, size_t width, size_t height, const size_t* local = nullptr,
                  int times = 1) {
        const size_t channels = order == CL_R ? 1 : order == CL_RG ? 2 : 4;
        const OwnedMem image = make_image({order, type}, describe(CL_MEM_OBJECT_IMAGE2D, {width, height, 1}));
        const std::vector<uint8_t> elements = random_bytes(width * height * channels);
        write_image(image, {0, 0, 0}, {width, height, 1}, elements.data());
        const auto found = launch(kernel, image, width, height, local, times);
        ASSERT_EQ(found.size(), width * height);
        for (size_t i = 0; i < width * height; ++i)
            for (size_t c = 0; c < 4; ++c) {
                const size_t at = order == CL_BGRA && c < 3 ? 2 - c : c;
                const float expected = c < channels ? elements[i * channels + at] : c == 3 ? 255 : 0;
                ASSERT_NEAR(255 * found[i].s[c], expected, 0.001f) << "component " << c << " of element " << i;
            }
    }
    OwnedProgram copying(const std::string& name, const std::string& attributes = "") {
        return build("kernel " + attributes + " void " + name +
                     R"((read_only image2d_t image, global float4* to, int row) {
            const int2 p = (int2)(get_global_id(0), get_global_id(1));
            if (get_local_size(0) > 4096)  // sees its groups, so their size is not changed
                row = 0;
            to[p.y * row + p.x] = read_imagef(image, p);
        })");
    }
    OwnedProgram sized(const std::string& name) {
        return build("kernel void " + name + "(global int* a) { a[get_global_id(0)] = (int)get_local_size(0); }",
                     "-cl-std=CL3.0");
    }

private:
    std::unique_ptr<MadeCode> code_;
};

TEST_F(CodeVersion, SmallLaunchesOfManySizesShareTheCodeOfTheirImages) {
    const OwnedProgram program = copying("shared");
    const OwnedKernel kernel = make_kernel(program, "shared");
    for (size_t height = 1; height <= 8; ++height)
        for (size_t width = 1; width <= 12; ++width)
            ASSERT_NO_FATAL_FAILURE(run_copy(kernel, CL_RGBA, width, height, nullptr, 4));
    EXPECT_EQ(made("shared"), 1);
}

TEST_F(CodeVersion, OtherGroupsOfTheSameImagesGetCodeOfTheirOwnWhenTheyAreHot) {
    const OwnedProgram program = copying("hot");
    const OwnedKernel kernel = make_kernel(program, "hot");
    const size_t first[] = {8, 8}, second[] = {4, 4};
    run_copy(kernel, CL_RGBA, 16, 16, first);
    EXPECT_EQ(made("hot"), 1);  // for its groups
    run_copy(kernel, CL_RGBA, side, side, second);
    EXPECT_EQ(made("hot"), 2);  // for any groups
    run_copy(kernel, CL_RGBA, side, side, second);
    EXPECT_EQ(made("hot"), 3);
    run_copy(kernel, CL_RGBA, side, side, second, 8);
    EXPECT_EQ(made("hot"), 3);
}

// Code for any images of a kernel with a required size is made for this size, and is not the last that its launches get.
TEST_F(CodeVersion, ImagesOfAKernelWithARequiredSizeGetCodeOfTheirOwnWhenTheyAreHot) {
    const OwnedProgram program = copying("required", "__attribute__((reqd_work_group_size(8, 8, 1)))");
    const OwnedKernel kernel = make_kernel(program, "required");
    const size_t local[] = {8, 8};
    size_t expected = 0;
    for (const cl_channel_order order : {CL_RGBA, CL_R, CL_RG}) {
        run_copy(kernel, order, 16, 16, local);
        EXPECT_EQ(made("required"), ++expected);
    }
    for (const size_t versions : {4, 5, 5}) {  // for any images, for these
        run_copy(kernel, CL_BGRA, side, side, local);
        EXPECT_EQ(made("required"), versions);
    }
}

TEST_F(CodeVersion, LaunchesAreCountedForEachSizeAndCountLessForLaterOnes) {
    const OwnedProgram program = sized("counted");
    const OwnedKernel kernel = make_kernel(program, "counted");
    run_sized(kernel, 64, 50);  // for any groups
    for (int i = 0; i < 7; ++i) {
        run_sized(kernel, 64, 4);
        run_sized(kernel, 64, 8);
    }
    EXPECT_EQ(made("counted"), 1);
    run_sized(kernel, 64, 4);
    EXPECT_EQ(made("counted"), 2);
    for (int i = 0; i < 8; ++i)
        run_sized(kernel, 64, 8);
    EXPECT_EQ(made("counted"), 2);
    for (int i = 0; i < 8; ++i)
        run_sized(kernel, 64, 8);
    EXPECT_EQ(made("counted"), 3);
}

// Rows of whole vectors have code that is right for no others. Code for any launch replaces it.
TEST_F(CodeVersion, UsualLaunchesHaveCodeOfTheirOwnUntilAnotherNeedsCodeForAny) {
    const OwnedProgram program = sized("usual");
    const OwnedKernel kernel = make_kernel(program, "usual");
    run_sized(kernel, 640, 64);
    run_sized(kernel, 256, 128);
    run_sized(kernel, 96, 32);
    EXPECT_EQ(made("usual"), 1);
    run_sized(kernel, 120, 64);  // the last group has 56 work-items
    EXPECT_EQ(made("usual"), 2);
    run_sized(kernel, 60, 20);
    run_sized(kernel, 640, 64);
    const OwnedKernel other = make_kernel(program, "usual");
    run_sized(other, 640, 64);
    EXPECT_EQ(made("usual"), 2);
}

// Rows of one vector have code for such rows, also where several vectors may run at once.
TEST_F(CodeVersion, UsualLaunchesInRowsOfOneVectorHaveCodeOfTheirOwn) {
    const OwnedProgram program = build(
        "kernel void chain(global float* a) { if (get_local_size(0) > 4096) return; float v = a[get_global_id(0)];"
        "for (int r = 0; r < 9; ++r) v = sqrt(v) / (1 + v); a[get_global_id(0)] = v; }");
    const OwnedKernel kernel = make_kernel(program, "chain");
    const OwnedMem buffer = make_buffer(640 * sizeof(cl_float));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    const auto run = [&](size_t global, size_t local) {
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    };
    run(64, 32);
    run(640, 64);
    run(96, 48);
    EXPECT_EQ(made("chain"), 1);
    run(60, 20);
    EXPECT_EQ(made("chain"), 2);
    run(64, 32);
    EXPECT_EQ(made("chain"), 2);
}

// The same with images: code for their formats and usual launches, then for their formats and any launch.
TEST_F(CodeVersion, UsualLaunchesWithImagesHaveCodeOfTheirOwn) {
    const OwnedProgram program = copying("usual_images");
    const OwnedKernel kernel = make_kernel(program, "usual_images");
    const size_t row[] = {32, 4}, other[] = {64, 1}, odd[] = {20, 4};
    run_copy(kernel, CL_RGBA, 64, 16, row);
    run_copy(kernel, CL_RGBA, 192, 8, other);
    EXPECT_EQ(made("usual_images"), 1);
    run_copy(kernel, CL_RGBA, 60, 16, odd);
    EXPECT_EQ(made("usual_images"), 2);
    run_copy(kernel, CL_RGBA, 40, 16, odd);
    run_copy(kernel, CL_RGBA, 64, 16, row);
    EXPECT_EQ(made("usual_images"), 2);
    run_copy(kernel, CL_R, 64, 16, row);
    EXPECT_EQ(made("usual_images"), 3);
}

// Whose lanes are another dimension than x, and whose groups the runtime may choose.
TEST_F(CodeVersion, UsualLaunchesOfColumnsHaveOneCode) {
    const OwnedProgram program =
        build("kernel void columns(global float* a) { int x = get_global_id(0), y = get_global_id(1);"
              "a[x * 64 + y] = a[x * 64 + y] * 2 + 1; }");
    const OwnedKernel kernel = make_kernel(program, "columns");
    const OwnedMem buffer = make_buffer(64 * 64 * sizeof(cl_float));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    const size_t global[] = {64, 64}, local[] = {16, 16};
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, global, local, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(made("columns"), 1);
}

// Code for any groups would have no lanes there: it was made, then replaced by code for this size when that had been launched eight times.
TEST_F(CodeVersion, FirstLaunchesInRowsOfAnotherDimensionHaveCodeForTheirSize) {
    const OwnedProgram program =
        build("kernel void across(global float* a) { if (get_local_size(0) > 4096) return;"
              "int x = get_global_id(0), y = get_global_id(1); a[x * 64 + y] = a[x * 64 + y] * 2 + 1; }");
    const OwnedMem buffer = make_buffer(64 * 64 * sizeof(cl_float));
    const size_t global[] = {64, 64}, row[] = {64, 1}, square[] = {16, 16};
    size_t launches = 0;
    const auto run = [&](const OwnedKernel& kernel, const size_t* local) {
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, global, local, 0, nullptr, nullptr), CL_SUCCESS);
        ++launches;
        EXPECT_EQ(read<cl_float>(buffer, 64 * 64), std::vector<cl_float>(64 * 64, std::exp2f(launches) - 1));
    };
    const std::vector<cl_float> zeros(64 * 64);
    ASSERT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, zeros.size() * sizeof(cl_float), zeros.data(), 0, nullptr,
                                   nullptr),
              CL_SUCCESS);
    const OwnedKernel kernel = make_kernel(program, "across"), other = make_kernel(program, "across");
    run(kernel, row);  // code for usual launches, and for this size
    EXPECT_EQ(made("across"), 2);
    run(kernel, square);
    for (int i = 0; i < 9; ++i)
        run(kernel, row);
    run(other, row);
    run(other, square);
    EXPECT_EQ(made("across"), 2);
}

// Rows that begin within a vector have blocks of ids that usual launches do not have.
TEST_F(CodeVersion, OffsetsWithinAVectorNeedCodeForAnyLaunch) {
    const OwnedProgram program = build("kernel void block(global uint* a, uint from)"
                                       "{ if (get_local_size(0) > 4096) return; uint i = get_global_id(0);"
                                       "a[i - from] = i / 16 * 16 + (i + 3 & 15); }");
    const OwnedKernel kernel = make_kernel(program, "block");
    const size_t global = 64;
    const OwnedMem buffer = make_buffer(global * sizeof(cl_uint));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    const auto run = [&](size_t offset) {
        const auto from = static_cast<cl_uint>(offset);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof from, &from), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &global, &global, 0, nullptr, nullptr), CL_SUCCESS);
        const auto found = read<cl_uint>(buffer, global);
        for (size_t i = 0; i < global; ++i)
            ASSERT_EQ(found[i], (offset + i) / 16 * 16 + (offset + i + 3) % 16) << i << " after " << offset;
    };
    run(0);
    run(48);
    EXPECT_EQ(made("block"), 1);
    run(3);
    EXPECT_EQ(made("block"), 2);
    run(8);
    run(48);
    EXPECT_EQ(made("block"), 2);
}

// A launch of the same sizes may have an offset whose ids are not small.
TEST_F(CodeVersion, LargeOffsetsNeedCodeForAnyLaunch) {
    const OwnedProgram program = build("kernel void moved(global ulong* a, ulong from)"
                                       "{ if (get_local_size(0) > 4096) return; int i = get_global_id(0) - from;"
                                       "a[i] = get_global_id(0) + (uint)get_global_id(0); }");
    const OwnedKernel kernel = make_kernel(program, "moved");
    const size_t global = 64;
    const OwnedMem buffer = make_buffer(global * sizeof(cl_ulong));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    size_t expected = 1;
    for (const size_t offset : {size_t{0}, size_t{1} << 20, (size_t{1} << 32) - 7, size_t{1} << 40, size_t{3}}) {
        const cl_ulong from = offset;
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof from, &from), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &global, &global, 0, nullptr, nullptr), CL_SUCCESS);
        const auto found = read<cl_ulong>(buffer, global);
        for (size_t i = 0; i < global; ++i)
            ASSERT_EQ(found[i], offset + i + static_cast<cl_uint>(offset + i)) << i << " after " << offset;
        expected = offset > (size_t{1} << 27) ? 2 : expected;
        EXPECT_EQ(made("moved"), expected) << offset;
    }
}

// Sub-groups are parts of a group in code for any groups, too.
TEST_F(CodeVersion, SubGroupsAreTheSameInCodeForAnyGroups) {
    const OwnedProgram program = build(R"(
        kernel void grouped(read_only image2d_t image, global float4* to, int row) {
            const int2 p = (int2)(get_global_id(0), get_global_id(1));
            const float red = read_imagef(image, p).x;
            const uint before = sub_group_scan_exclusive_add(1u), all = get_sub_group_size();
            to[p.y * row + p.x] = (float4)(red, sub_group_reduce_add(1u) == all, before == get_sub_group_local_id(), 1) ;
        })",
                                       "-cl-std=CL3.0");
    const OwnedKernel kernel = make_kernel(program, "grouped");
    const Triple extent{16, 12, 1};
    const size_t locals[][2] = {{8, 4}, {4, 4}, {16, 1}, {2, 12}, {8, 4}, {1, 3}, {16, 12}};
    for (const auto& local : locals) {
        const OwnedMem image = make_image({CL_R, type}, describe(CL_MEM_OBJECT_IMAGE2D, extent));
        const std::vector<uint8_t> elements = random_bytes(extent[0] * extent[1]);
        write_image(image, {0, 0, 0}, extent, elements.data());
        const auto found = launch(kernel, image, extent[0], extent[1], local, 1);
        ASSERT_EQ(found.size(), elements.size());
        for (size_t i = 0; i < found.size(); ++i) {
            ASSERT_NEAR(255 * found[i].s[0], elements[i], 0.001f) << i;
            ASSERT_EQ(found[i].s[1], 1) << i;
            ASSERT_EQ(found[i].s[2], 1) << i;
        }
    }
}

// When more sizes are used than are counted, sizes with much work are still found: two take turns after eight others.
TEST_F(CodeVersion, SizesThatTakeTurnsAreNotMissed) {
    const OwnedProgram program = sized("turns");
    const OwnedKernel kernel = make_kernel(program, "turns");
    run_sized(kernel, 64, 50);  // for any groups
    for (size_t local = 2; local < 10; ++local)
        run_sized(kernel, side * side, local);
    EXPECT_EQ(made("turns"), 1);
    for (int i = 0; i < 6; ++i)
        for (const size_t local : {10, 11})
            run_sized(kernel, side * side / 4, local);
    EXPECT_EQ(made("turns"), 3);
}

}  // namespace
}  // namespace polder::test
