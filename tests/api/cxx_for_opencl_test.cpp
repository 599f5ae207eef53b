// Global objects in programs of C++ for OpenCL.
#include "support/fixture.h"

#include <string>

namespace polder::test {
namespace {

class CxxForOpenCL : public ContextTest {
protected:
    // What two work-items of the kernel `k` write.
    std::vector<cl_int> two_of(cl_program program, cl_device_id device) {
        OwnedQueue on = make_queue(device);
        OwnedKernel kernel = make_kernel(program, "k");
        OwnedMem buffer = make_buffer(2 * sizeof(cl_int));
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        const size_t two = 2;
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &two, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        return read<cl_int>(buffer, 2, on);
    }
};

// Constructors that are no constant expressions, but compute with constants alone.
TEST_F(CxxForOpenCL, GlobalObjectsOfCxx_AreConstructedWhileTheProgramIsCompiled) {
    OwnedProgram program = build(R"(
        struct Numbers {
            int first, sum = 0;
            explicit Numbers(int count) : first(count) {
                for (int i = 0; i <= count; ++i)
                    sum += i;
            }
            ~Numbers() { sum = -1; }
        };
        __global Numbers six(6);
        __global Numbers twenty_one(six.sum);
        __kernel void k(__global int* out) { out[get_global_id(0)] = twenty_one.first * 1000 + twenty_one.sum; }
    )",
                                 "-cl-std=CLC++2021");
    for (const cl_device_id device : devices)
        EXPECT_EQ(two_of(program, device), (std::vector<cl_int>{21231, 21231}));
    size_t kernels = 0;
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, nullptr), CL_SUCCESS);
    EXPECT_EQ(kernels, 1u);
}

// As Clang has it, and other implementations that are made of it.
TEST_F(CxxForOpenCL, ConstructorsOfCxxThatNeedADevice_AreAKernel) {
    const char* const source = R"(
        struct Size {
            int value;
            Size() : value((int)get_global_size(0) + 41) {}
        };
        __global Size size;
        __kernel void k(__global int* out) { out[get_global_id(0)] = size.value; }
    )";
    for (const cl_device_id device : devices) {
        OwnedProgram program = build(source, "-cl-std=CLC++2021");
        std::string names(1024, '\0');
        ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, names.size(), names.data(), nullptr), CL_SUCCESS);
        const size_t begin = names.find("_GLOBAL__sub_I_");
        ASSERT_NE(begin, std::string::npos) << names;
        const std::string name = names.substr(begin, names.find_first_of(std::string{";\0", 2}, begin) - begin);
        OwnedQueue on = make_queue(device);
        OwnedKernel constructor = make_kernel(program, name.c_str());
        const size_t one = 1;
        ASSERT_EQ(clEnqueueNDRangeKernel(on, constructor, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        EXPECT_EQ(two_of(program, device), (std::vector<cl_int>{42, 42}));
    }
}

}  // namespace
}  // namespace polder::test
