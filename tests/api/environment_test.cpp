// The effects of the variables that are read when the platform is made. One process per test would be needed for more than
// one value: this program has one.
#include <CL/cl.h>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>

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
    const std::string output = testing::internal::GetCapturedStderr();
    EXPECT_NE(output.find("nonsense"), std::string::npos) << output;
    EXPECT_NE(output.find("cpu"), std::string::npos) << output;
    EXPECT_NE(output.find("discrete"), std::string::npos) << output;
}

TEST(EnvironmentDeathTest, SigUsr2PrintsTheObjectsThatAreAlive) {
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// `ulimit -v`, which sanitizers do not survive.
class LittleAddressSpaceDeathTest : public testing::TestWithParam<rlim_t> {};

// Answers 7 when a CPU device computes and compiles within `mib` of address space, otherwise the step that failed.
int use_cpu_within(rlim_t mib) {
    const rlimit limit{mib << 20, mib << 20};
    setrlimit(RLIMIT_AS, &limit);
    setenv("POCL_DEVICES", "cpu discrete", 1);
    setenv("POCL_DISCRETE0_PARAMETERS", "memory=1G", 1);
    cl_platform_id platform = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS)
        return 1;
    cl_device_id device = nullptr;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr) != CL_SUCCESS)
        return 2;
    const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    const cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
    const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 1 << 20, nullptr, nullptr);
    const cl_int one = 1;
    cl_int first = 0;
    if (clEnqueueFillBuffer(queue, buffer, &one, 4, 0, 1 << 20, 0, nullptr, nullptr) != CL_SUCCESS)
        return 3;
    if (clEnqueueReadBuffer(queue, buffer, CL_TRUE, 64, 4, &first, 0, nullptr, nullptr) != CL_SUCCESS || first != 1)
        return 4;
    const char* source = "kernel void put(global int* p) { p[get_global_id(0)] = 3; }";
    const cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
    return clBuildProgram(program, 0, nullptr, "", nullptr, nullptr) == CL_SUCCESS ? 7 : 5;
}

TEST_P(LittleAddressSpaceDeathTest, LeavesOutTheDevicesThatDoNotFit) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(std::exit(use_cpu_within(GetParam())), testing::ExitedWithCode(7), "");
}

INSTANTIATE_TEST_SUITE_P(MiB, LittleAddressSpaceDeathTest, testing::Values(2500, 3000, 3500));
#endif

}  // namespace
}  // namespace polder::test
