// Launches for recording.py, which runs this program twice, with POLDER_TRACE and without, and gives them slices of time in turns.
//
// Reads lines from stdin: the number of a case, and milliseconds. Prints a line for each: nanoseconds per launch, the least of the
// blocks of about 100 us within the slice. Without arguments it prints nothing else; with --cases, the names of all cases.
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace polder::bench;

struct Case {
    const char* name;
    uint32_t buffers;
    uint32_t launches_per_finish;
    uint32_t kernels = 1;  // launched in turns
    bool has_parts = false;  // the buffers are sub-buffers
};
constexpr Case cases[] = {
    {"1 buffer", 1, 1},
    {"2 buffers", 2, 1},
    {"3 buffers", 3, 1},
    {"12 buffers", 12, 1},
    {"1 part of a buffer", 1, 1, 1, true},
    {"40 kernels in turns", 1, 1, 40},
    {"1 buffer, batches of 100", 1, 100},
    {"3 buffers, batches of 100", 3, 100},
    {"12 buffers, batches of 100", 12, 100},
};
constexpr size_t items = 64;

class Launches {
public:
    Launches(const OneDevice& machine, const Case& what)
        : queue_(machine.make_queue()), batch_(what.launches_per_finish) {
        std::string source;
        for (uint32_t kernel = 0; kernel < what.kernels; ++kernel) {
            source += "kernel void k" + std::to_string(kernel) + "(global int* p0";
            for (uint32_t i = 1; i < what.buffers; ++i)
                source += ", global int* p" + std::to_string(i);
            source += ") { p0[get_global_id(0)] += 1";
            for (uint32_t i = 1; i < what.buffers; ++i)
                source += " + p" + std::to_string(i) + "[get_global_id(0)]";
            source += "; }\n";
        }
        const cl_program program = machine.build(source.c_str());
        std::vector<cl_mem> buffers;
        for (uint32_t i = 0; i < what.buffers; ++i) {
            cl_mem buffer = machine.buffer(items * sizeof(cl_int) * 2);
            if (what.has_parts) {
                const cl_buffer_region region{0, items * sizeof(cl_int)};
                cl_int error = CL_SUCCESS;
                buffer = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
                check(error, "clCreateSubBuffer");
            }
            buffers.push_back(buffer);
        }
        for (uint32_t kernel = 0; kernel < what.kernels; ++kernel) {
            kernels_.push_back(OneDevice::kernel_of(program, ("k" + std::to_string(kernel)).c_str()));
            for (uint32_t i = 0; i < what.buffers; ++i)
                check(clSetKernelArg(kernels_.back(), i, sizeof buffers[i], &buffers[i]), "clSetKernelArg");
        }
    }
    void launch() {
        for (uint32_t i = 0; i < batch_; ++i)
            check(clEnqueueNDRangeKernel(queue_, kernels_[next_ = next_ + 1 < kernels_.size() ? next_ + 1 : 0], 1,
                                         nullptr, &items, &items, 0, nullptr, nullptr),
                  "clEnqueueNDRangeKernel");
        check(clFinish(queue_), "clFinish");
    }
    // The least of the blocks.
    [[nodiscard]] double nanoseconds(std::chrono::milliseconds slice) {
        const uint32_t rounds = std::max(1U, 200 / batch_);
        double least = std::numeric_limits<double>::infinity();
        for (const auto begin = Clock::now(); Clock::now() - begin < slice;) {
            const auto block = Clock::now();
            for (uint32_t i = 0; i < rounds; ++i)
                launch();
            least = std::min(least, microseconds_since(block) * 1000 / (rounds * batch_));
        }
        return least;
    }

private:
    cl_command_queue queue_;
    uint32_t batch_;
    std::vector<cl_kernel> kernels_;
    size_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], "--cases") == 0) {
        for (const Case& each : cases)
            std::puts(each.name);
        return 0;
    }
    const OneDevice machine;
    std::vector<Launches> launches;
    for (const Case& each : cases)
        launches.emplace_back(machine, each);
    size_t number = 0;
    int milliseconds = 0;
    while (std::scanf("%zu %d", &number, &milliseconds) == 2 && number < launches.size()) {
        std::printf("%.3f\n", launches[number].nanoseconds(std::chrono::milliseconds(milliseconds)));
        std::fflush(stdout);
    }
    return 0;
}
