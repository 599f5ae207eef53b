// What a small kernel costs to compile: build, kernel object and first launch, as the Khronos suite does it thousands of times.
//
//   OCL_ICD_VENDORS=build/packaging/vendors POCL_KERNEL_CACHE=0 build/tests/bench/small_kernels_bench [rounds [kind]]
//
// Each row is a kind of kernel of one of that suite's tests, with a few built-in functions. The kinds take turns, and each round of a kind
// has a source of its own, so that nothing is found in a cache of programs. Prints the best and the median milliseconds of the build and
// of kernel object, launch and clFinish, and the processor time for build and for launch, the median, which is the figure to compare on a busy machine. With
// POCL_DEBUG=timing Polder reports the parts of each launch.
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl.h"

#include <algorithm>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

using namespace polder::bench;

struct Kind {
    const char* name;
    const char* options;
    const char* source;
};

// Every kernel takes one buffer. NUMBER makes the source of each round different.
constexpr Kind kinds[] = {
    {"c11_atomics", "-cl-std=CL3.0", R"(
kernel void test(global int* p) {
    local atomic_int cell;
    const int item = get_global_id(0);
    if (get_local_id(0) == 0)
        atomic_init(&cell, NUMBER);
    barrier(CLK_LOCAL_MEM_FENCE);
    int expected = atomic_load_explicit(&cell, memory_order_relaxed, memory_scope_work_group);
    const int swapped = atomic_compare_exchange_strong_explicit(&cell, &expected, item, memory_order_relaxed,
                                                                memory_order_relaxed, memory_scope_work_group);
    p[item] = atomic_fetch_add_explicit(&cell, swapped, memory_order_relaxed, memory_scope_work_group);
})"},
    {"vec_align", "", R"(
typedef struct { char a; short4 b; int3 c; } Packed;
kernel void test(global uint* p) {
    const int item = get_global_id(0);
    private Packed x;
    private int3 y;
    local float8 z;
    p[3 * item] = (uint)((size_t)&x.b & (NUMBER + 7));
    p[3 * item + 1] = (uint)(size_t)&y & 15;
    p[3 * item + 2] = (uint)((size_t)&z & 31);
})"},
    {"shuffle", "", R"(
kernel void test(global short8* p) {
    const int item = get_global_id(0);
    const ushort8 mask = (ushort8)(3, 1, NUMBER & 7, 7, 0, 5, 6, 2);
    p[item] = shuffle2(p[item], p[item + 1], mask);
})"},
    {"async_copy", "", R"(
kernel void test(global int* p) {
    local int copy[256];
    const int lid = get_local_id(0), count = get_local_size(0);
    for (int i = lid; i < 256; i += count)
        copy[i] = NUMBER;
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t event = async_work_group_copy(copy, p + get_group_id(0) * count, (size_t)count, 0);
    wait_group_events(1, &event);
    p[get_global_id(0)] = copy[count - 1 - lid];
})"},
    {"conversion", "", R"(
kernel void test(global uchar4* p) {
    const int item = get_global_id(0);
    const float4 value = convert_float4_rtz(p[item]) * (float)NUMBER;
    p[item] = convert_uchar4_sat_rte(value);
})"},
    {"math", "", R"(
kernel void test(global float* p) {
    const int item = get_global_id(0);
    p[item] = fma(sqrt(p[item]), exp2(p[item]), NUMBER);
})"},
};

std::string numbered(std::string source, unsigned number) {
    constexpr const char* word = "NUMBER";
    for (size_t at = source.find(word); at != source.npos; at = source.find(word, at))
        source.replace(at, std::char_traits<char>::length(word), std::to_string(number));
    return source;
}

// Of this process and of what it has waited for: Polder's compiler runs in tasks that count as processes.
double processor_microseconds() {
    double sum = 0;
    for (const auto whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage used{};
        getrusage(whose, &used);
        for (const timeval& time : {used.ru_utime, used.ru_stime})
            sum += static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    }
    return sum;
}

struct Times {
    std::vector<double> build, launch, build_processor, launch_processor;
};

double best(const std::vector<double>& times) { return *std::min_element(times.begin(), times.end()); }

void measure(const OneDevice& machine, cl_command_queue queue, cl_mem buffer, const Kind& kind, unsigned number,
             Times& times) {
    const std::string source = numbered(kind.source, number);
    const double processor = processor_microseconds();
    const auto begin = Clock::now();
    const cl_program program = machine.build(source.c_str(), kind.options);
    times.build.push_back(microseconds_since(begin));
    const double processor_built = processor_microseconds();
    times.build_processor.push_back(processor_built - processor);
    const auto built = Clock::now();
    const cl_kernel kernel = OneDevice::kernel_of(program, "test");
    check(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");
    const size_t items = 64;
    check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
    check(clFinish(queue), "clFinish");
    times.launch.push_back(microseconds_since(built));
    times.launch_processor.push_back(processor_microseconds() - processor_built);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
    const std::string only = argc > 2 ? argv[2] : "";  // a kind's name, to count its instructions
    const OneDevice machine;
    const cl_command_queue queue = machine.make_queue();
    const cl_mem buffer = machine.buffer(1 << 16);
    std::vector<Times> all(std::size(kinds));
    constexpr unsigned first_number = 3;  // smaller ones are special cases, such as a product with 1
    Times first;  // the process sets up its compiler
    measure(machine, queue, buffer, kinds[0], 2, first);
    for (unsigned round = first_number; round < rounds + first_number; ++round)
        for (size_t i = 0; i < all.size(); ++i)
            if (only.empty() || only == kinds[i].name)
                measure(machine, queue, buffer, kinds[i], round, all[i]);
    std::printf("%-12s %16s %16s %22s\n", "ms", "build", "first launch", "processor: build, launch");
    double sums[4] = {};
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].build.empty())
            continue;
        const double build = median(all[i].build) / 1000, launch = median(all[i].launch) / 1000;
        const double figures[4] = {best(all[i].build) / 1000, best(all[i].launch) / 1000,
                                   median(all[i].build_processor) / 1000, median(all[i].launch_processor) / 1000};
        std::printf("%-12s %7.2f (%6.2f) %7.2f (%6.2f) %12.2f %9.2f\n", kinds[i].name, figures[0], build, figures[1],
                    launch, figures[2], figures[3]);
        for (size_t k = 0; k < 4; ++k)
            sums[k] += figures[k] / static_cast<double>(all.size());
    }
    std::printf("%-12s %7.2f          %7.2f          %12.2f %9.2f\n", "mean", sums[0], sums[1], sums[2], sums[3]);
    clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
}
