// What the variables that are read when the platform is made do. One process per test would be needed for more than
// one value: this program has one.
#include <CL/cl.h>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace polder::test {
namespace {

TEST(Environment, UnknownDeviceIsAnErrorThatListsTheKnownOnes) {
    ASSERT_EQ(setenv("POCL_DEVICES", "cpu nonsense", 1), 0);
    testing::internal::CaptureStderr();
    cl_platform_id platform = nullptr;
    ASSERT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    cl_device_id device = nullptr;
    cl_uint count = 1;
    EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count), CL_DEVICE_NOT_FOUND);
    EXPECT_EQ(count, 0u);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("nonsense"), std::string::npos) << said;
    EXPECT_NE(said.find("cpu"), std::string::npos) << said;
    EXPECT_NE(said.find("discrete"), std::string::npos) << said;
}

} // namespace
} // namespace polder::test
