// How long small launches take on more and more cores: the time should not rise with the number of cores.
//
//   OCL_ICD_VENDORS=build/lib/api/libpolder.so build/tests/bench/small_launches_bench [threads_max [milliseconds per figure]]
//
// `p[i] += 1` for groups of 64 work-items; one row for each number of threads that the device may use (1, 2, 4, ...), each in a process
// of its own with POCL_CPU_MAX_CU_COUNT. Prints the median of launch + clFinish in microseconds, and that figure as a multiple of
// the lowest one in the rows above.
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl.h"

#include <algorithm>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace polder::bench;

constexpr size_t items_of_a_group = 64;
constexpr size_t group_counts[] = {1, 16, 64, 256, 1024, 4096};

// Prints one figure a line. The limit on threads is in the environment.
void measure(std::chrono::milliseconds duration) {
    const OneDevice machine;
    const cl_command_queue queue = machine.make_queue();
    const cl_program program = machine.build("kernel void add(global int* p) { p[get_global_id(0)] += 1; }");
    const cl_kernel kernel = OneDevice::kernel_of(program, "add");
    for (const size_t groups : group_counts) {
        const size_t items = groups * items_of_a_group;
        const cl_mem buffer = machine.buffer(items * sizeof(cl_int));
        check(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");
        const auto launch = [&] {
            check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, &items_of_a_group, 0, nullptr, nullptr),
                  "clEnqueueNDRangeKernel");
            check(clFinish(queue), "clFinish");
        };
        for (int i = 0; i < 200; ++i)
            launch();
        std::vector<double> times;
        for (const auto begin = Clock::now(); Clock::now() - begin < duration;) {
            const auto launched = Clock::now();
            launch();
            times.push_back(microseconds_since(launched));
        }
        std::printf("%.3f\n", median(times));
        clReleaseMemObject(buffer);
    }
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
}

// Runs this program again with a limit on the device's threads.
std::vector<double> measured_with(unsigned threads, const char* milliseconds) {
    int ends[2];
    if (pipe(ends) != 0)
        return {};
    const pid_t child = fork();
    if (child == 0) {
        setenv("POCL_CPU_MAX_CU_COUNT", std::to_string(threads).c_str(), 1);
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "small_launches_bench", "measure", milliseconds, static_cast<char*>(nullptr));
        _exit(1);
    }
    close(ends[1]);
    std::vector<double> result;
    FILE* lines = fdopen(ends[0], "r");
    for (double figure = 0; lines && std::fscanf(lines, "%lf", &figure) == 1;)
        result.push_back(figure);
    if (lines)
        std::fclose(lines);
    waitpid(child, nullptr, 0);
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    const char* milliseconds = argc > 2 ? argv[2] : "300";
    if (argc > 1 && std::string(argv[1]) == "measure") {
        measure(std::chrono::milliseconds(std::atoi(milliseconds)));
        return 0;
    }
    const unsigned threads_max =
        argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : std::max(1U, std::thread::hardware_concurrency());
    std::printf("%-8s", "threads");
    for (const size_t groups : group_counts)
        std::printf("  %6zu groups  ", groups);
    std::printf("\n");
    std::vector<double> lowest(std::size(group_counts), 0);
    for (unsigned threads = 1;; threads = std::min(threads * 2, threads_max)) {
        const std::vector<double> row = measured_with(threads, milliseconds);
        if (row.size() != lowest.size()) {
            std::fprintf(stderr, "no figures for %u threads\n", threads);
            return 1;
        }
        std::printf("%-8u", threads);
        for (size_t i = 0; i < row.size(); ++i) {
            std::printf("  %7.2f (%4.2f)", row[i], lowest[i] > 0 ? row[i] / lowest[i] : 1.0);
            lowest[i] = lowest[i] > 0 ? std::min(lowest[i], row[i]) : row[i];
        }
        std::printf("\n");
        std::fflush(stdout);
        if (threads >= threads_max)
            return 0;
    }
}
