// What the variables that are read when the platform is made do. One process per test would be needed for more than
// one value: this program has one.
#include <CL/cl.h>
#include <csignal>
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

TEST(EnvironmentDeathTest, SigUsr2TellsWhatIsAlive) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            setenv("POCL_SIGUSR2_HANDLER", "1", 1);
            unsetenv("POCL_DEVICES");
            cl_platform_id platform = nullptr;
            clGetPlatformIDs(1, &platform, nullptr);
            cl_device_id device = nullptr;
            clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
            cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
            const cl_mem kept = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
            const cl_mem also_kept = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
            clReleaseMemObject(clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, nullptr));
            std::raise(SIGUSR2);
            clReleaseMemObject(also_kept);
            clReleaseMemObject(kept);
            clReleaseContext(context);
            std::raise(SIGUSR2);
            std::exit(7);
        },
        testing::ExitedWithCode(7), "alive: 1 context, 2 memory objects\n.*alive: nothing");
}

TEST(EnvironmentDeathTest, NoDeviceOnlyCompiles_WhichIsSaid) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            setenv("POCL_OFFLINE_COMPILE", "1", 1);
            cl_platform_id platform = nullptr;
            std::exit(clGetPlatformIDs(1, &platform, nullptr) == CL_SUCCESS ? 7 : 8);
        },
        testing::ExitedWithCode(7), "warning: POCL_OFFLINE_COMPILE");
}

} // namespace
} // namespace polder::test
