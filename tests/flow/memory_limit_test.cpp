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
    // What there was room for is right, and room that is given back is used again.
    EXPECT_EQ(read<cl_int>(buffers.front(), 16), std::vector<cl_int>(16, 7));
    buffers.erase(buffers.begin());
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffers.back(), &value, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffers.back(), 16), std::vector<cl_int>(16, 7));
    cl_int created = CL_SUCCESS;
    const cl_mem larger = clCreateBuffer(context, CL_MEM_READ_WRITE, global + 1, nullptr, &created);
    EXPECT_EQ(larger, nullptr);
    EXPECT_EQ(created, CL_INVALID_BUFFER_SIZE);
}

} // namespace
} // namespace polder::test
