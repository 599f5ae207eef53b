// A program that wants more buffers than its control group allows gets errors, and is not killed. Run by
// run_in_control_group.py with 512 MiB.
#include "../api/support/fixture.h"

#include <vector>

namespace polder::test {
namespace {

constexpr size_t MiB = size_t{1} << 20;
constexpr size_t bytes = 64 * MiB;

class MemoryLimit : public ContextTest {};

TEST_F(MemoryLimit, TwoGiBOfBuffersInAControlGroupOf512MiB) {
    cl_ulong global = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, nullptr), CL_SUCCESS);
    EXPECT_LE(global, 512 * MiB);
    EXPECT_GE(global, 256 * MiB);
    std::vector<OwnedMem> buffers;
    cl_int error = CL_SUCCESS;
    const cl_int value = 7;
    while (error == CL_SUCCESS && buffers.size() < 32) {
        buffers.push_back(make_buffer(bytes));
        error = clEnqueueFillBuffer(queue, buffers.back(), &value, 4, 0, bytes, 0, nullptr, nullptr);
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    }
    EXPECT_EQ(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    EXPECT_EQ(buffers.size(), global / bytes + 1);
    // Buffers that fitted have the right bytes, and released memory is used again.
    EXPECT_EQ(read<cl_int>(buffers.front(), 16), std::vector<cl_int>(16, 7));
    buffers.erase(buffers.begin());
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffers.back(), &value, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffers.back(), 16), std::vector<cl_int>(16, 7));
    cl_int created = CL_SUCCESS;
    const cl_mem larger = clCreateBuffer(context, CL_MEM_READ_WRITE, global + 1, nullptr, &created);
    EXPECT_EQ(larger, nullptr);
    EXPECT_EQ(created, CL_INVALID_BUFFER_SIZE);
}

// Buffers that touch other pages than those of the same size before them: released memory that is kept does not add up.
TEST_F(MemoryLimit, PartsOfReleasedBuffersDoNotAddUp) {
    constexpr size_t part = size_t{64} << 10, all = 240 * MiB, at_once = 4;
    const cl_int value = 7;
    for (size_t offset = 0; offset < all; offset += part) {
        std::vector<OwnedMem> buffers;
        for (size_t i = 0; i < at_once; ++i) {
            buffers.push_back(make_buffer(all));
            ASSERT_EQ(clEnqueueFillBuffer(queue, buffers.back(), &value, 4, offset, part, 0, nullptr, nullptr),
                      CL_SUCCESS);
        }
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    }
}

// Small buffers are released; their memory is kept in pieces that larger buffers cannot use. Parts of large buffers then use all that the
// limit allows.
TEST_F(MemoryLimit, ReleasedBuffersMakeRoomForPartsOfOthers) {
    cl_ulong global = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, nullptr), CL_SUCCESS);
    const cl_int value = 7;
    std::vector<OwnedMem> small;
    for (size_t i = 0; i < 220; ++i) {
        small.push_back(make_buffer(MiB));
        ASSERT_EQ(clEnqueueFillBuffer(queue, small.back(), &value, 4, 0, MiB, 0, nullptr, nullptr), CL_SUCCESS);
    }
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    for (size_t i = 0; i < small.size(); i += 2)
        small[i] = {};
    const OwnedMem large[] = {make_buffer(global / 4 * 3), make_buffer(global / 4 * 3)};
    cl_int error = CL_SUCCESS;
    size_t filled = 0;
    for (size_t offset = 0; error == CL_SUCCESS; offset += 4 * MiB, filled += 4 * MiB) {
        const size_t which = offset < global / 2 ? 0 : 1;
        error = clEnqueueFillBuffer(queue, large[which], &value, 4, offset - which * (global / 2), 4 * MiB, 0, nullptr,
                                    nullptr);
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    }
    EXPECT_EQ(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    EXPECT_GT(filled, global - 120 * MiB);
    EXPECT_LE(filled, global - 110 * MiB + 4 * MiB);
}

}  // namespace
}  // namespace polder::test
