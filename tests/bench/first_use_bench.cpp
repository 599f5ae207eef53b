// What the first use of a buffer costs in a fresh process, where no page of memory was ever touched.
//
//   OCL_ICD_VENDORS=build/lib/api/libpolder.so build/tests/bench/first_use_bench [buffers]
//
// Creates buffers of 4 to 34 KiB (20,000 if not given), fills 16 bytes of each, and keeps all. Prints microseconds per buffer, the
// same for a second use, and how much memory of the process is resident for each byte of the buffers.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void check(cl_int error, const char* what) {
    if (error == CL_SUCCESS)
        return;
    std::fprintf(stderr, "%s: error %d\n", what, error);
    std::exit(1);
}

double resident_bytes() {
    double pages = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%*s %lf", &pages) != 1)
            pages = 0;
        std::fclose(file);
    }
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

int main(int argc, char** argv) {
    const size_t count = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 20000;
    cl_platform_id platform;
    cl_device_id device;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr) != CL_SUCCESS)
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    cl_int error;
    const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    check(error, "clCreateContext");
    const cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &error);
    check(error, "clCreateCommandQueueWithProperties");
    const double before = resident_bytes();
    std::mt19937 random(1);
    std::vector<cl_mem> buffers;
    double bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        const size_t size = 4096 + random() % (30 * 1024);
        bytes += static_cast<double>(size);
        buffers.push_back(clCreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, &error));
        check(error, "clCreateBuffer");
    }
    const cl_int pattern = 7;
    const auto use_all = [&](const char* what) {
        const auto begin = Clock::now();
        for (const cl_mem buffer : buffers)
            check(clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, 16, 0, nullptr, nullptr),
                  "clEnqueueFillBuffer");
        check(clFinish(queue), "clFinish");
        const double microseconds = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
        std::printf("%-12s %8.2f us a buffer\n", what, microseconds / static_cast<double>(count));
    };
    use_all("first use");
    use_all("second use");
    std::printf("%-12s %8.2f bytes for each byte of a buffer\n", "resident", (resident_bytes() - before) / bytes);
    for (const cl_mem buffer : buffers)
        clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}
