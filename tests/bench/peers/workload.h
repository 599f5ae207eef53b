// What tools/bench times on two OpenCL implementations: rows, each a function that measures one thing on the first
// device of the first platform and returns the seconds for one operation.
//
// Plain C API, one process for each measurement, errors end the process.
#pragma once

#include <CL/cl.h>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace bench {

inline void check(cl_int status, const char* what) {
    if (status == CL_SUCCESS)
        return;
    std::fprintf(stderr, "%s failed: %d\n", what, status);
    std::exit(1);
}

class Session {
public:
    explicit Session(cl_command_queue_properties properties = 0);

    cl_device_id device = nullptr;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;

    [[nodiscard]] cl_mem buffer(size_t bytes) const;
    [[nodiscard]] cl_program build(const char* source) const;
    [[nodiscard]] cl_kernel kernel(const char* source, const char* name) const {
        return kernel_of(build(source), name);
    }
    [[nodiscard]] static cl_kernel kernel_of(cl_program program, const char* name);
    void launch(cl_kernel kernel, size_t items, size_t group) const;
    void launch_2d(cl_kernel kernel, size_t items, size_t group) const;
    void finish() const { check(clFinish(queue), "clFinish"); }
};

template <class... Arguments>
void set_arguments(cl_kernel kernel, const Arguments&... arguments) {
    cl_uint index = 0;
    (check(clSetKernelArg(kernel, index++, sizeof arguments, &arguments), "clSetKernelArg"), ...);
}

using Clock = std::chrono::steady_clock;
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

} // namespace bench
