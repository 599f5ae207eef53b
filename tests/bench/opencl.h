// What the benchmarks of OpenCL calls share. A failing call ends the program. Only an OpenCL library is needed, so that a benchmark
// can be copied to another machine.
#pragma once

#include <CL/cl.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace polder::bench {

using Clock = std::chrono::steady_clock;

inline double microseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Of at least one value, which are reordered.
inline double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

inline void check(cl_int error, const char* what) {
    if (error == CL_SUCCESS)
        return;
    std::fprintf(stderr, "%s: error %d\n", what, error);
    std::exit(1);
}

// A context of one device of the first platform: the first one of the preferred type, or else the first one.
class OneDevice {
public:
    explicit OneDevice(cl_device_type preferred = CL_DEVICE_TYPE_CPU) {
        cl_platform_id platform = nullptr;
        check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
        if (clGetDeviceIDs(platform, preferred, 1, &device, nullptr) != CL_SUCCESS)
            check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
        cl_int error = CL_SUCCESS;
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        check(error, "clCreateContext");
    }
    OneDevice(const OneDevice&) = delete;
    OneDevice& operator=(const OneDevice&) = delete;
    ~OneDevice() { clReleaseContext(context); }

    [[nodiscard]] cl_command_queue make_queue(cl_command_queue_properties flags = 0) const {
        const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, flags, 0};
        cl_int error = CL_SUCCESS;
        const cl_command_queue made = clCreateCommandQueueWithProperties(context, device, properties, &error);
        check(error, "clCreateCommandQueueWithProperties");
        return made;
    }
    [[nodiscard]] cl_mem buffer(size_t bytes) const {
        cl_int error = CL_SUCCESS;
        const cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
        check(error, "clCreateBuffer");
        return made;
    }
    [[nodiscard]] cl_program build(const char* source, const char* options = "") const {
        cl_int error = CL_SUCCESS;
        const cl_program made = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
        check(error, "clCreateProgramWithSource");
        check(clBuildProgram(made, 1, &device, options, nullptr, nullptr), "clBuildProgram");
        return made;
    }
    [[nodiscard]] static cl_kernel kernel_of(cl_program program, const char* name) {
        cl_int error = CL_SUCCESS;
        const cl_kernel made = clCreateKernel(program, name, &error);
        check(error, "clCreateKernel");
        return made;
    }

    cl_device_id device = nullptr;
    cl_context context = nullptr;
};

}  // namespace polder::bench
