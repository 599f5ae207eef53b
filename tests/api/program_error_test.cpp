// What programs refuse: other contexts' programs and devices, a second build while one runs, kernels that are not there.
#include "support/programs.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace polder::test {
namespace {

TEST_F(Programs, OfOtherContextsAndDevicesThatAreNotTheirsAreRefused) {
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext elsewhere = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    const char* text = "int one(void) { return 1; }";
    const OwnedProgram stranger = clCreateProgramWithSource(elsewhere, 1, &text, nullptr, &error);
    ASSERT_EQ(clCompileProgram(stranger, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    const OwnedProgram mine = from_source(good_source);
    const char* name = "x.h";
    EXPECT_EQ(clCompileProgram(mine, 0, nullptr, "", 1, stranger.in(), &name, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(clLinkProgram(context, 0, nullptr, "", 1, stranger.in(), nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(clCompileProgram(mine, 0, nullptr, "", 0, nullptr, nullptr, nullptr, &error), CL_INVALID_VALUE);
    if (devices.size() < 2)
        return;
    const cl_device_id other = devices[1];
    EXPECT_EQ(clBuildProgram(stranger, 1, &other, "", nullptr, nullptr), CL_INVALID_DEVICE);
    EXPECT_EQ(clCompileProgram(stranger, 1, &other, "", 0, nullptr, nullptr, nullptr, nullptr), CL_INVALID_DEVICE);
    EXPECT_EQ(clLinkProgram(elsewhere, 1, &other, "", 1, stranger.in(), nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
    const size_t size = 1;
    const unsigned char byte = 0, *binary = &byte;
    EXPECT_EQ(clCreateProgramWithBinary(elsewhere, 1, &other, &size, &binary, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
    cl_build_status status = CL_BUILD_NONE;
    EXPECT_EQ(clGetProgramBuildInfo(stranger, other, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr),
              CL_INVALID_DEVICE);
}

TEST_F(Programs, EveryBinaryOfAListHasItsStatus) {
    if (devices.size() < 2)
        GTEST_SKIP() << "needs two devices";
    const OwnedProgram program = build(good_source);
    const std::vector<unsigned char> good = binaries(program)[0];
    const std::vector<unsigned char> bad(64, 0x7f);
    const size_t sizes[] = {bad.size(), good.size()};
    const unsigned char* data[] = {bad.data(), good.data()};
    cl_int statuses[] = {12345, 12345};
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateProgramWithBinary(context, 2, devices.data(), sizes, data, statuses, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_BINARY);
    EXPECT_EQ(statuses[0], CL_INVALID_BINARY);
    EXPECT_EQ(statuses[1], CL_SUCCESS);
}

TEST_F(Programs, KernelsThatDifferBetweenDevicesCannotBeCreated) {
    if (devices.size() < 2)
        GTEST_SKIP() << "needs two devices";
    const OwnedProgram program = from_source("kernel void k(global int* a ARGUMENT) { a[0] = 1; }");
    ASSERT_EQ(clBuildProgram(program, 1, &devices[0], "-DARGUMENT=", nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(program, 1, &devices[1], "-DARGUMENT=,int*b", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    ASSERT_EQ(clBuildProgram(program, 1, &devices[1], "-DARGUMENT=,int\\ b", nullptr, nullptr), CL_SUCCESS)
        << build_log(program);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateKernel(program, "k", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_KERNEL_DEFINITION);
}

TEST_F(Programs, WithoutAnExecutableHaveNoKernels) {
    const OwnedProgram program = from_source(good_source);
    cl_uint count = 0;
    EXPECT_EQ(clCreateKernelsInProgram(program, 0, nullptr, &count), CL_INVALID_PROGRAM_EXECUTABLE);
    size_t size = 0;
    for (const cl_program_info name : {CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_KERNEL_NAMES,
                                       CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT})
        EXPECT_EQ(clGetProgramInfo(program, name, 0, nullptr, &size), CL_INVALID_PROGRAM_EXECUTABLE) << name;
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateProgramWithBuiltInKernels(context, 1, devices.data(), nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
}

// The compiler waits for the header, a pipe, until the test has queried the program meanwhile.
TEST_F(Programs, BeingBuiltAreNotBuiltAgain) {
    const std::string directory = testing::TempDir() + "polder_pipe_" + std::to_string(getpid());
    ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
    const std::string path = directory + "/slow.h";
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    static std::atomic<bool> is_done;
    is_done = false;
    const OwnedProgram program = from_source("#include <slow.h>\nkernel void k(global int* a) { a[0] = VALUE; }");
    const std::string options = "-I" + directory;
    ASSERT_EQ(clBuildProgram(
                  program, 1, devices.data(), options.c_str(), [](cl_program, void*) { is_done = true; }, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(build_value<cl_build_status>(program, CL_PROGRAM_BUILD_STATUS), CL_BUILD_IN_PROGRESS);
    EXPECT_EQ(clBuildProgram(program, 1, devices.data(), "", nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clCompileProgram(program, 1, devices.data(), "", 0, nullptr, nullptr, nullptr, nullptr),
              CL_INVALID_OPERATION);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clLinkProgram(context, 1, devices.data(), "", 1, program.in(), nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
    EXPECT_EQ(clCreateKernel(program, "k", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROGRAM_EXECUTABLE);
    std::ofstream(path) << "#define VALUE 3\n";
    for (int i = 0; i < 6000 && !is_done; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(build_value<cl_build_status>(program, CL_PROGRAM_BUILD_STATUS), CL_BUILD_SUCCESS) << build_log(program);
    std::remove(path.c_str());
    std::remove(directory.c_str());
}

}  // namespace
}  // namespace polder::test
