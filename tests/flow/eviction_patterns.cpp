// Runs one pattern of memory use on a device whose memory is too small for it, and checks the result. eviction_patterns_test.py
// records each run and compares the bytes that were moved with the optimum (polder-memory replay).
//
// eviction_patterns PATTERN MODE: sweep, product, stencil or random; "ahead" enqueues all kernels before the first one may run, so
// that their uses are known; "now" lets them run at once. "timed" is a sweep that prints the bytes moved in each second.
#include <CL/cl.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void check(cl_int code, const char* what) {
    if (code == CL_SUCCESS)
        return;
    std::fprintf(stderr, "%s: error %d\n", what, code);
    std::exit(1);
}

constexpr const char* source = R"(
kernel void add_one(global uint* a) { a[get_global_id(0)] += 1; }
kernel void multiply_add(global uint* c, global const uint* a, global const uint* b) {
    size_t i = get_global_id(0);
    c[i] += a[i] * b[i];
}
kernel void relax(global uint* to, global const uint* left, global const uint* here, global const uint* right) {
    size_t i = get_global_id(0);
    to[i] = left[i] + here[i] + right[i];
}
)";

class Machine {
public:
    Machine() {
        check(clGetPlatformIDs(1, &platform_, nullptr), "clGetPlatformIDs");
        cl_device_id devices[2];
        check(clGetDeviceIDs(platform_, CL_DEVICE_TYPE_ALL, 2, devices, nullptr), "clGetDeviceIDs");
        cl_int code = 0;
        context_ = clCreateContext(nullptr, 2, devices, nullptr, nullptr, &code);
        check(code, "clCreateContext");
        queue_ = clCreateCommandQueueWithProperties(context_, devices[1], nullptr, &code);
        check(code, "clCreateCommandQueueWithProperties");
        host_queue_ = clCreateCommandQueueWithProperties(context_, devices[0], nullptr, &code);
        check(code, "clCreateCommandQueueWithProperties");
        program_ = clCreateProgramWithSource(context_, 1, const_cast<const char**>(&source), nullptr, &code);
        check(code, "clCreateProgramWithSource");
        check(clBuildProgram(program_, 2, devices, "", nullptr, nullptr), "clBuildProgram");
    }
    ~Machine() {
        for (cl_mem each : buffers_)
            clReleaseMemObject(each);
        for (cl_kernel each : kernels_)
            if (each)
                clReleaseKernel(each);
        if (gate_)
            clReleaseEvent(gate_);
        clReleaseProgram(program_);
        clReleaseCommandQueue(queue_);
        clReleaseCommandQueue(host_queue_);
        clReleaseContext(context_);
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    // All words are `value`; the bytes are in host memory. The machine releases it.
    cl_mem buffer(uint32_t value) {
        cl_int code = 0;
        cl_mem made = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
        check(code, "clCreateBuffer");
        buffers_.push_back(made);
        check(clEnqueueFillBuffer(host_queue_, made, &value, sizeof value, 0, bytes, 0, nullptr, nullptr),
              "clEnqueueFillBuffer");
        check(clFinish(host_queue_), "clFinish");
        return made;
    }
    void launch(const char* name, const std::vector<cl_mem>& arguments) {
        cl_kernel& kernel = kernels_[name[0] == 'a' ? 0 : name[0] == 'm' ? 1 : 2];
        cl_int code = CL_SUCCESS;
        if (!kernel)
            kernel = clCreateKernel(program_, name, &code);
        check(code, "clCreateKernel");
        for (cl_uint i = 0; i < arguments.size(); ++i)
            check(clSetKernelArg(kernel, i, sizeof(cl_mem), &arguments[i]), "clSetKernelArg");
        const size_t words = bytes / sizeof(uint32_t);
        check(clEnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &words, nullptr, 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel");
    }
    void expect(cl_mem buffer, uint32_t value) {
        std::vector<uint32_t> words(bytes / sizeof(uint32_t));
        check(clEnqueueReadBuffer(host_queue_, buffer, CL_TRUE, 0, bytes, words.data(), 0, nullptr, nullptr),
              "clEnqueueReadBuffer");
        for (const uint32_t word : words)
            if (word != value) {
                std::fprintf(stderr, "%u instead of %u\n", word, value);
                std::exit(1);
            }
    }
    // Until `open`, no kernel runs.
    void hold_back() {
        cl_int code = 0;
        gate_ = clCreateUserEvent(context_, &code);
        check(code, "clCreateUserEvent");
        check(clEnqueueBarrierWithWaitList(queue_, 1, &gate_, nullptr), "clEnqueueBarrierWithWaitList");
    }
    void open() {
        if (gate_)
            check(clSetUserEventStatus(gate_, CL_COMPLETE), "clSetUserEventStatus");
        check(clFinish(queue_), "clFinish");
    }

    size_t bytes = size_t{256} << 10;

private:
    cl_platform_id platform_ = nullptr;
    cl_context context_ = nullptr;
    cl_command_queue queue_ = nullptr;
    cl_command_queue host_queue_ = nullptr;
    cl_program program_ = nullptr;
    cl_kernel kernels_[3] = {};
    cl_event gate_ = nullptr;
    std::vector<cl_mem> buffers_;
};

std::vector<cl_mem> buffers(Machine& machine, size_t count, uint32_t value) {
    std::vector<cl_mem> all;
    for (size_t i = 0; i < count; ++i)
        all.push_back(machine.buffer(value));
    return all;
}

// Every buffer in turn, again and again.
void sweep(Machine& machine, size_t count, uint32_t passes) {
    const std::vector<cl_mem> all = buffers(machine, count, 5);
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t pass = 0; pass < passes; ++pass)
        for (cl_mem each : all)
            machine.launch("add_one", {each});
    machine.open();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%.3f s, %.1f MB/s used by kernels\n", seconds,
                static_cast<double>(machine.bytes * count * passes) / seconds / 1e6);
    for (cl_mem each : all)
        machine.expect(each, 5 + passes);
}

// Tiles of three matrices, with one number for each tile's words.
void product(Machine& machine) {
    constexpr size_t n = 8;
    const std::vector<cl_mem> a = buffers(machine, n * n, 2);
    const std::vector<cl_mem> b = buffers(machine, n * n, 3);
    const std::vector<cl_mem> c = buffers(machine, n * n, 0);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            for (size_t k = 0; k < n; ++k)
                machine.launch("multiply_add", {c[i * n + j], a[i * n + k], b[k * n + j]});
    machine.open();
    for (cl_mem each : c)
        machine.expect(each, 6 * n);
}

// Two arrays of blocks, each in turns the source and the target.
void stencil(Machine& machine) {
    constexpr size_t n = 64;
    constexpr uint32_t steps = 6;
    std::vector<cl_mem> from = buffers(machine, n, 1);
    std::vector<cl_mem> to = buffers(machine, n, 0);
    for (uint32_t step = 0; step < steps; ++step) {
        for (size_t i = 0; i < n; ++i)
            machine.launch("relax", {to[i], from[(i + n - 1) % n], from[i], from[(i + 1) % n]});
        std::swap(from, to);
    }
    machine.open();
    for (cl_mem each : from)
        machine.expect(each, 729);
}

void random_uses(Machine& machine) {
    constexpr size_t n = 128;
    const std::vector<cl_mem> all = buffers(machine, n, 0);
    std::vector<uint32_t> counts(n, 0);
    uint64_t state = 88172645463325252u;
    for (int use = 0; use < 1000; ++use) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        machine.launch("add_one", {all[state % n]});
        ++counts[state % n];
    }
    machine.open();
    for (size_t i = 0; i < n; ++i)
        machine.expect(all[i], counts[i]);
}

}  // namespace

int main(int count, char** words) {
    if (count != 3)
        return 2;
    const std::string pattern = words[1];
    Machine machine;
    if (std::strcmp(words[2], "ahead") == 0)
        machine.hold_back();
    if (pattern == "sweep")
        sweep(machine, 128, 5);
    else if (pattern == "timed") {
        machine.bytes = size_t{4} << 20;
        sweep(machine, 128, 3);
    } else if (pattern == "product")
        product(machine);
    else if (pattern == "stencil")
        stencil(machine);
    else if (pattern == "random")
        random_uses(machine);
    else
        return 2;
}
