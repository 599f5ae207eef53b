// How the cost of a call grows with the number of threads that use one context.
//
//   OCL_ICD_VENDORS=build/lib/api/libpolder.so build/tests/bench/threads_bench [threads_max [milliseconds per figure]]
//
// Every thread has its own queue, kernel and buffer, except in the rows named "shared". Prints nanoseconds per round
// of each thread, and that figure as a multiple of the one-thread figure. Uses the first CPU device, else the first device.
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace {

using namespace polder::bench;

struct Machine : OneDevice {
    cl_program program = build("kernel void touch(global int* p) { p[get_global_id(0)] += 1; }");
    cl_command_queue shared_queue = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    [[nodiscard]] cl_mem small_buffer() const { return buffer(4096); }
};

// The objects of one thread.
struct Worker {
    const Machine& machine;
    const cl_command_queue queue;
    const cl_kernel kernel;
    const cl_mem buffer;

    explicit Worker(const Machine& of)
        : machine(of), queue(of.make_queue()), kernel(OneDevice::kernel_of(of.program, "touch")),
          buffer(of.small_buffer()) {
        use(buffer);
        launch(queue);
        check(clFinish(queue), "clFinish");
    }
    ~Worker() {
        clReleaseMemObject(buffer);
        clReleaseKernel(kernel);
        clReleaseCommandQueue(queue);
    }
    void use(cl_mem memory) const { check(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg"); }
    void launch(cl_command_queue on, cl_event* event = nullptr) const {
        const size_t items = 16;
        check(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, &items, 0, nullptr, event),
              "clEnqueueNDRangeKernel");
    }
};

struct Row {
    const char* name;
    void (*round)(Worker& worker);
};

const Row rows[] = {
    {"create, release", [](Worker& worker) { clReleaseMemObject(worker.machine.small_buffer()); }},
    {"launch, finish",
     [](Worker& worker) {
         worker.launch(worker.queue);
         check(clFinish(worker.queue), "clFinish");
     }},
    {"create, first use, finish, release",
     [](Worker& worker) {
         const cl_mem memory = worker.machine.small_buffer();
         worker.use(memory);
         worker.launch(worker.queue);
         check(clFinish(worker.queue), "clFinish");
         clReleaseMemObject(memory);
         worker.use(worker.buffer);
     }},
    {"shared out-of-order queue: launch, wait",
     [](Worker& worker) {
         cl_event event;
         worker.launch(worker.machine.shared_queue, &event);
         check(clWaitForEvents(1, &event), "clWaitForEvents");
         clReleaseEvent(event);
     }},
};

// Nanoseconds per round of each thread.
double measure(const Machine& machine, const Row& row, unsigned threads, std::chrono::milliseconds duration) {
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    std::atomic<bool> stop{false};
    std::vector<double> ns(threads);
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i)
        all.emplace_back([&, i] {
            Worker worker{machine};
            for (int warm = 0; warm < 100; ++warm)
                row.round(worker);
            ready.fetch_add(1);
            while (!go.load(std::memory_order_acquire))
                std::this_thread::yield();
            const auto begin = Clock::now();
            uint64_t rounds = 0;
            while (!stop.load(std::memory_order_relaxed))
                for (int batch = 0; batch < 16; ++batch, ++rounds)
                    row.round(worker);
            ns[i] = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                    static_cast<double>(std::max<uint64_t>(rounds, 1));
        });
    while (ready.load() < threads)
        std::this_thread::yield();
    go.store(true, std::memory_order_release);
    std::this_thread::sleep_for(duration);
    stop = true;
    for (std::thread& thread : all)
        thread.join();
    double sum = 0;
    for (const double one : ns)
        sum += one;
    return sum / threads;
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned threads_max =
        argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : std::max(1u, std::thread::hardware_concurrency());
    const std::chrono::milliseconds duration{argc > 2 ? std::atoi(argv[2]) : 300};
    constexpr int repeats = 3;
    const Machine machine;
    std::printf("ns per round of each thread (multiple of one thread), best of %d\n%-42s", repeats, "threads");
    std::vector<unsigned> counts;
    for (unsigned threads = 1; threads < threads_max; threads *= 2)
        counts.push_back(threads);
    counts.push_back(threads_max);
    for (const unsigned threads : counts)
        std::printf("%16u", threads);
    std::printf("\n");
    for (const Row& row : rows) {
        std::printf("%-42s", row.name);
        double one = 0;
        for (const unsigned threads : counts) {
            double best = measure(machine, row, threads, duration);
            for (int i = 1; i < repeats; ++i)
                best = std::min(best, measure(machine, row, threads, duration));
            one = threads == 1 ? best : one;
            std::printf("%8.0f (%4.2f)", best, best / one);
            std::fflush(stdout);
        }
        std::printf("\n");
    }
}
