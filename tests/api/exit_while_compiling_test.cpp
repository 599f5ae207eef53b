// The compiler works while another thread calls exit, also after exit has called the destructors of static objects. This holds where
// LLVM is inside of the library.
#include "support/fixture.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <unistd.h>

// For the leak sanitizer: what these programs leave behind, they leave on purpose.
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

namespace polder::test {
namespace {

cl_context context = nullptr;

std::atomic<bool> is_exiting{false};
std::atomic<bool> are_statics_destroyed{false};

bool is_gpu(cl_device_id device) {
    cl_device_type type = 0;
    return clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr) == CL_SUCCESS &&
           (type & CL_DEVICE_TYPE_GPU);
}

// Builds a program of its own, launches its kernel and reads the result. CUDA executes nothing any more when its own handler of exit has
// run: then a GPU may refuse the launch.
bool builds_and_runs(int number) {
    const std::string text =
        "kernel void k(global int* a, local int* l) { int i = get_local_id(0); l[0] = " + std::to_string(number) +
        "; barrier(CLK_LOCAL_MEM_FENCE); a[i] = l[0] + (int)rint(tgamma(1.0f + i)); }";
    const char* source = text.c_str();
    const cl_device_id device = all_devices().front();
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
    cl_int found[4] = {};
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof found, found, nullptr);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
    if (clBuildProgram(program, 0, nullptr, "", nullptr, nullptr) != CL_SUCCESS)
        return false;
    cl_kernel kernel = clCreateKernel(program, "k", nullptr);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    clSetKernelArg(kernel, 1, sizeof(cl_int), nullptr);
    const size_t size = 4;
    const bool is_good =
        clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &size, &size, 0, nullptr, nullptr) == CL_SUCCESS &&
        clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof found, found, 0, nullptr, nullptr) == CL_SUCCESS &&
        found[3] == number + 6;
    return is_good || (is_exiting && is_gpu(device));
}
std::atomic<int> good{0};
std::atomic<int> bad{0};

void build_until_the_process_ends() {
    for (int i = 0;; ++i) {
        const bool is_after = are_statics_destroyed;
        const bool is_good = builds_and_runs(1000 + i);
        if (!is_good)
            ++bad;
        else if (is_after)
            ++good;
    }
}

TEST(ExitWhileCompilingDeathTest, OnAnotherThread_BuildsGoOn) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            // Registered before the library is loaded, so called after its static objects would have been destroyed.
            std::atexit([] {
                are_statics_destroyed = true;
                while (good < 3 && bad == 0)
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                _exit(bad == 0 ? 7 : 1);
            });
            alarm(60);
            const std::vector<cl_device_id> devices = all_devices();
            context = clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr,
                                      nullptr);
            if (!builds_and_runs(1))
                _exit(2);
            std::thread(build_until_the_process_ends).detach();
            std::thread([] {
                is_exiting = true;
                std::exit(3);
            }).detach();
            build_until_the_process_ends();
        },
        testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace polder::test
