// Pipes in programs from SPIR-V: the kernels of spirv/pipes.cl, built from source and from what Clang's SPIR-V backend makes of
// them. A hand-written module has what Clang does not emit: the null reservation, and hints of SPIR-V 1.6.
#include "support/modules.h"

#include <algorithm>
#include <numeric>

namespace polder::test {
namespace {

class SpirvPipes : public ModuleTest {
protected:
    static constexpr size_t packets = 64, group = 16;

    // The words that the kernel writes, which are 0 before.
    std::vector<cl_uint> run(cl_program program, const char* name, OwnedMem& pipe, size_t items, cl_device_id device) {
        std::vector<cl_uint> words(packets, 0);
        OwnedMem out = make_buffer(packets * sizeof(cl_uint), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words.data());
        OwnedKernel kernel = make_kernel(program, name);
        OwnedQueue on = make_queue(device);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), pipe.in()), CL_SUCCESS) << name;
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS) << name;
        const size_t local = std::min(items, group);
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, &local, 0, nullptr, nullptr), CL_SUCCESS);
        return read<cl_uint>(out, packets, on);
    }

    // Fills a pipe with `write`, and takes everything with `take`; returns what was found, in rising order.
    std::vector<cl_uint> pass(cl_program program, const char* write, size_t writers, const char* take, size_t takers) {
        cl_int error = CL_INVALID_VALUE;
        OwnedMem pipe = clCreatePipe(context, 0, sizeof(cl_uint), packets, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        const std::vector<cl_uint> written = run(program, write, pipe, writers, devices.front());
        EXPECT_EQ(std::accumulate(written.begin(), written.end(), size_t{0}), packets) << write;
        for (const char* count : {"count_read", "count_written"}) {
            const std::vector<cl_uint> counted = run(program, count, pipe, 1, devices.back());
            EXPECT_EQ(counted[0], packets) << count;
            EXPECT_EQ(counted[1], packets) << count;
        }
        std::vector<cl_uint> found = run(program, take, pipe, takers, devices.back());
        EXPECT_EQ(run(program, "count_read", pipe, 1, devices.front())[0], 0U) << take;
        std::ranges::sort(found);
        return found;
    }

    void expect_whole(cl_program program) {
        std::vector<cl_uint> all(packets), pairs(packets, 0);
        std::iota(all.begin(), all.end(), 1);
        for (cl_uint i = 0; i < packets / 2; ++i)
            pairs[packets / 2 + i] = i * 4 + 2;  // 2 i + (2 i + 1) + 1
        EXPECT_EQ(pass(program, "one", packets, "take", packets), all);
        EXPECT_EQ(pass(program, "by_group", packets, "take_by_group", packets), all);
        EXPECT_EQ(pass(program, "by_item", packets / 2, "take_two", packets / 2), pairs);
    }
};

TEST_F(SpirvPipes, KernelsPassEachPacketOnceFromSourceAndFromClangsModule) {
    expect_whole(build(file(POLDER_TEST_PIPES), "-cl-std=CL3.0"));
    for (const char* module : {"pipes-1.4-O0", "pipes-1.6-O2"}) {
        SCOPED_TRACE(module);
        expect_whole(build_module(module));
    }
}

TEST_F(SpirvPipes, ArgumentsArePipes) {
    OwnedProgram program = build_module("pipes-1.6-O2");
    OwnedKernel kernel = make_kernel(program, "take");
    OwnedMem buffer = make_buffer(64);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_INVALID_MEM_OBJECT);
}

TEST_F(SpirvPipes, TheNullReservationIsNotValid) {
    OwnedProgram program = build_module("hints");
    OwnedKernel kernel = make_kernel(program, "null");
    OwnedMem out = make_buffer(sizeof(cl_uint));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
    const size_t items = 1;
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<cl_uint>(out, 1, on), std::vector<cl_uint>{7});
    }
}

TEST_F(SpirvPipes, HintsOfLaterVersionsChangeNoResult) {
    OwnedProgram program = build_module("hints");
    OwnedKernel kernel = make_kernel(program, "copy");
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT32};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = description.image_height = 2;
    std::vector<cl_uint> elements(16);
    std::iota(elements.begin(), elements.end(), 100);
    cl_int error = CL_INVALID_VALUE;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    OwnedMem in = clCreateImage(context, flags, &format, &description, elements.data(), &error);
    ASSERT_EQ(error, CL_SUCCESS);
    OwnedMem out = clCreateImage(context, flags, &format, &description, elements.data(), &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const cl_uint added = 1000;
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), in.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 2, sizeof added, &added), CL_SUCCESS);
    const size_t items = 1, origin[3] = {0, 0, 0}, region[3] = {2, 2, 1};
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    std::vector<cl_uint> found(16), expected = elements;
    ASSERT_EQ(clEnqueueReadImage(queue, out, CL_TRUE, origin, region, 0, 0, found.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    for (size_t i = 0; i < 4; ++i)
        expected[8 + i] = elements[4 + i] + added;  // (0, 1) is what was at (1, 0)
    EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace polder::test
