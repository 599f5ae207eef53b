// What tests of programs share: a source, its binaries, and a launch that shows which kernel was built.
#pragma once

#include "fixture.h"

namespace polder::test {

inline constexpr const char* good_source = "kernel void second(global int* a) { a[0] = 2; }\n"
                                           "kernel void first(global int* a) { a[0] = 1; }\n";

class Programs : public ContextTest {
protected:
    template <class T>
    T build_value(cl_program program, cl_program_build_info name) {
        T value{};
        EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    std::string program_text(cl_program program, cl_program_info name) {
        size_t size = 0;
        EXPECT_EQ(clGetProgramInfo(program, name, 0, nullptr, &size), CL_SUCCESS);
        std::string text(size, '\0');
        EXPECT_EQ(clGetProgramInfo(program, name, size, text.data(), nullptr), CL_SUCCESS);
        return text.substr(0, text.find('\0'));
    }
    // One per device.
    std::vector<std::vector<unsigned char>> binaries(cl_program program) {
        std::vector<size_t> sizes(devices.size());
        EXPECT_EQ(
            clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
            CL_SUCCESS);
        std::vector<std::vector<unsigned char>> data;
        std::vector<unsigned char*> places;
        data.reserve(sizes.size());
        places.reserve(sizes.size());
        for (const size_t size : sizes)
            places.push_back(data.emplace_back(size).data());
        EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof(unsigned char*), places.data(),
                                   nullptr),
                  CL_SUCCESS);
        return data;
    }
    cl_program from_binary(const std::vector<unsigned char>& bytes, cl_int* status, cl_int* error) {
        return ContextTest::from_binary(devices[0], bytes, status, error);
    }
    void expect_runs(cl_program program, const char* name, cl_int expected) {
        OwnedKernel kernel = make_kernel(program, name);
        OwnedMem buffer = make_buffer(sizeof(cl_int));
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        const size_t one = 1;
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<cl_int>(buffer, 1)[0], expected);
    }
};

} // namespace polder::test
