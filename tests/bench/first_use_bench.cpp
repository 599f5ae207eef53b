// What the first use of a buffer costs in a fresh process, where no page of memory was ever touched.
//
//   OCL_ICD_VENDORS=build/lib/api/libpolder.so build/tests/bench/first_use_bench [buffers]
//
// Creates buffers of 4 to 34 KiB (20,000 if not given), fills 16 bytes of each, and keeps all. Prints microseconds per buffer, the
// same for a second use, and how much memory of the process is resident for each byte of the buffers.
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl.h"

#include <random>
#include <unistd.h>
#include <vector>

namespace {

using namespace polder::bench;

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
    const OneDevice machine;
    const cl_command_queue queue = machine.make_queue();
    const double before = resident_bytes();
    std::mt19937 random(1);
    std::vector<cl_mem> buffers;
    double bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        const size_t size = 4096 + random() % (30 * 1024);
        bytes += static_cast<double>(size);
        buffers.push_back(machine.buffer(size));
    }
    const cl_int pattern = 7;
    const auto use_all = [&](const char* what) {
        const auto begin = Clock::now();
        for (const cl_mem buffer : buffers)
            check(clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, 16, 0, nullptr, nullptr),
                  "clEnqueueFillBuffer");
        check(clFinish(queue), "clFinish");
        std::printf("%-12s %8.2f us a buffer\n", what, microseconds_since(begin) / static_cast<double>(count));
    };
    use_all("first use");
    use_all("second use");
    std::printf("%-12s %8.2f bytes for each byte of a buffer\n", "resident", (resident_bytes() - before) / bytes);
    for (const cl_mem buffer : buffers)
        clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
}
