#include "support/fixture.h"

namespace polder::test {
namespace {

using Absent = ContextTest;
TEST_F(Absent, PipesCannotBeCreated) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreatePipe(context, 0, 4, 4, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    OwnedMem buffer = make_buffer(64);
    size_t value = 0;
    EXPECT_EQ(clGetPipeInfo(buffer, CL_PIPE_PACKET_SIZE, sizeof value, &value, nullptr), CL_INVALID_MEM_OBJECT);
}

} // namespace
} // namespace polder::test
