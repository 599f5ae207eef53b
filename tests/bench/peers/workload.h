// What tools/bench times on two OpenCL implementations: rows, each a function that measures one thing on the first
// device of the first platform, or on two of its devices, and returns the seconds for one operation.
//
// Plain C API, one process for each measurement, errors end the process.
#pragma once

#include "../opencl.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace bench {

using polder::bench::check;
using polder::bench::Clock;

class Session : public polder::bench::OneDevice {
public:
    explicit Session(cl_command_queue_properties properties = 0)
        : OneDevice(CL_DEVICE_TYPE_ALL), queue(make_queue(properties)) {}

    const cl_command_queue queue;

    [[nodiscard]] cl_kernel kernel(const char* source, const char* name) const {
        return kernel_of(build(source), name);
    }
    [[nodiscard]] cl_program build(const char* source) const {
        return OneDevice::build(source, "-cl-fast-relaxed-math");
    }
    void launch(cl_kernel kernel, size_t items, size_t group) const;
    void launch_2d(cl_kernel kernel, size_t items, size_t group) const;
    void finish() const { check(clFinish(queue), "clFinish"); }
};

template <class... Arguments>
void set_arguments(cl_kernel kernel, const Arguments&... arguments) {
    cl_uint index = 0;
    (check(clSetKernelArg(kernel, index++, sizeof arguments, &arguments), "clSetKernelArg"), ...);
}

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Seconds for one call of `function`, the best of `rounds` rounds of `calls` calls after one round to warm up.
template <class Function>
double best_of(int rounds, int calls, Function&& function) {
    double best = 1e30;
    for (int round = 0; round <= rounds; ++round) {
        const auto start = Clock::now();
        for (int call = 0; call < calls; ++call)
            function();
        const double seconds = seconds_since(start) / calls;
        if (round > 0 && seconds < best)
            best = seconds;
    }
    return best;
}

struct Row {
    const char* name;
    double goal;  // Polder's seconds over the peer's, at most
    double (*measure)();
};
[[nodiscard]] std::span<const Row> command_rows();
[[nodiscard]] std::span<const Row> kernel_rows();
[[nodiscard]] std::span<const Row> two_device_rows();

} // namespace bench
