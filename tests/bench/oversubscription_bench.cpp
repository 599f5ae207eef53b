// How fast a device works on buffers that its memory has no room for: every buffer is used in turn, again and again, so that each use moves
// one buffer to the device and, where kernels change them, another one back to the host.
//
// For POCL_DEVICES="cpu cuda" with POCL_CUDA0_PARAMETERS=memory=8G, or "cpu discrete" with POCL_DISCRETE0_PARAMETERS=memory=256M,bandwidth=1G.
//
// oversubscription_bench link: the rates of the link, in each direction alone and in both at once, for buffers that are moved again and
//   again. With POLDER_ALLOC_CONF=pinned:True, that is the pinned link.
// oversubscription_bench read|change TOTAL_MIB BUFFER_MIB PASSES: prints one line for each pass: buffers used, bytes to the device and from it,
//   in GB/s. `read` leaves the buffers as they are. All bytes are checked at the end.
#include "opencl.h"

#include <CL/cl_ext_polder.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

using polder::bench::check;
using polder::bench::Clock;

constexpr const char* source = R"(
kernel void change(global uint4* a, global uint* unused) { a[get_global_id(0)] += 1; }
kernel void read(global const uint4* a, global uint* found) {
    uint4 v = a[get_global_id(0)];
    if (v.x + v.y + v.z + v.w == 77) found[0] = 1;
}
)";

struct Moved {
    uint64_t in = 0;  // from host memory
    uint64_t out = 0;
};

double rate(uint64_t bytes, Clock::time_point begin) {
    return static_cast<double>(bytes) / (polder::bench::microseconds_since(begin) * 1e3);
}

// A context of the first processor and the first other device.
class Machine {
public:
    Machine() {
        cl_platform_id platform = nullptr;
        check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices_, nullptr), "clGetDeviceIDs");
        cl_int error = CL_SUCCESS;
        context_ = clCreateContext(nullptr, 2, devices_, nullptr, nullptr, &error);
        check(error, "clCreateContext (two devices are needed)");
        for (int i = 0; i < 2; ++i) {
            queues[i] = clCreateCommandQueueWithProperties(context_, devices_[i], nullptr, &error);
            check(error, "clCreateCommandQueueWithProperties");
        }
        transfers_ = reinterpret_cast<clGetMemoryTransfersPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform, "clGetMemoryTransfersPOLDER"));
        program_ = clCreateProgramWithSource(context_, 1, const_cast<const char**>(&source), nullptr, &error);
        check(error, "clCreateProgramWithSource");
        check(clBuildProgram(program_, 2, devices_, "", nullptr, nullptr), "clBuildProgram");
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    ~Machine() {
        for (const cl_mem each : buffers_)
            clReleaseMemObject(each);
        for (const cl_command_queue queue : queues)
            clReleaseCommandQueue(queue);
        clReleaseProgram(program_);
        clReleaseContext(context_);
    }

    // Its bytes are written on the host.
    cl_mem buffer(size_t bytes, uint32_t value) {
        cl_int error = CL_SUCCESS;
        const cl_mem made = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &error);
        check(error, "clCreateBuffer");
        buffers_.push_back(made);
        check(clEnqueueFillBuffer(queues[0], made, &value, sizeof value, 0, bytes, 0, nullptr, nullptr),
              "clEnqueueFillBuffer");
        check(clFinish(queues[0]), "clFinish");
        return made;
    }
    [[nodiscard]] cl_kernel kernel(const char* name) const {
        cl_int error = CL_SUCCESS;
        const cl_kernel made = clCreateKernel(program_, name, &error);
        check(error, "clCreateKernel");
        return made;
    }
    [[nodiscard]] Moved moved() const {
        cl_memory_transfers_polder list[64];
        cl_uint count = 0;
        check(transfers_(context_, 64, list, &count), "clGetMemoryTransfersPOLDER");
        Moved sums;
        for (cl_uint i = 0; i < std::min(count, 64u); ++i) {
            if (list[i].from_space == 0)
                sums.in += list[i].moved_bytes;
            if (list[i].to_space == 0)
                sums.out += list[i].moved_bytes;
        }
        return sums;
    }

    cl_command_queue queues[2] = {};  // the processor's and the device's

private:
    cl_device_id devices_[2] = {};
    cl_context context_ = nullptr;
    cl_program program_ = nullptr;
    clGetMemoryTransfersPOLDER_fn transfers_ = nullptr;
    std::vector<cl_mem> buffers_;
};

// A buffer is changed where it is, outside of the measured time, then goes to the other side.
void measure_link(Machine& machine) {
    constexpr size_t bytes = size_t{256} << 20;
    constexpr int rounds = 16;
    const cl_mem buffers[] = {machine.buffer(bytes, 1), machine.buffer(bytes, 1)};
    cl_uint value = 1;
    const auto place = [&](cl_mem buffer, int side) {
        ++value;
        check(clEnqueueFillBuffer(machine.queues[side], buffer, &value, sizeof value, 0, bytes, 0, nullptr, nullptr),
              "clEnqueueFillBuffer");
        check(clFinish(machine.queues[side]), "clFinish");
    };
    const auto move = [&](cl_mem buffer, int to) {
        check(clEnqueueMigrateMemObjects(machine.queues[to], 1, &buffer, 0, 0, nullptr, nullptr), "migrate");
        check(clFlush(machine.queues[to]), "clFlush");
    };
    double best[3] = {};
    for (int round = 0; round < rounds; ++round)
        for (int way = 0; way < 3; ++way) {
            const bool goes_in = way != 1;
            const bool goes_out = way != 0;
            place(buffers[0], 0);
            place(buffers[1], 1);
            const auto begin = Clock::now();
            if (goes_in)
                move(buffers[0], 1);
            if (goes_out)
                move(buffers[1], 0);
            check(clFinish(machine.queues[0]), "clFinish");
            check(clFinish(machine.queues[1]), "clFinish");
            best[way] = std::max(best[way], rate(bytes * (way == 2 ? 2 : 1), begin));
        }
    std::printf("link: in %.1f GB/s, out %.1f GB/s, both at once %.1f GB/s in all\n", best[0], best[1], best[2]);
}

void sweep(Machine& machine, const std::string& mode, uint64_t total, uint64_t bytes, uint32_t passes) {
    std::vector<cl_mem> all;
    for (uint64_t made = 0; made + bytes <= total; made += bytes)
        all.push_back(machine.buffer(bytes, 5));
    const cl_mem found = machine.buffer(4096, 0);
    const cl_kernel kernel = machine.kernel(mode.c_str());
    check(clSetKernelArg(kernel, 1, sizeof found, &found), "clSetKernelArg");
    const size_t items = bytes / 16;
    for (uint32_t pass = 0; pass < passes; ++pass) {
        const Moved before = machine.moved();
        const auto begin = Clock::now();
        for (const cl_mem each : all) {
            check(clSetKernelArg(kernel, 0, sizeof each, &each), "clSetKernelArg");
            check(clEnqueueNDRangeKernel(machine.queues[1], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
                  "clEnqueueNDRangeKernel");
        }
        check(clFinish(machine.queues[1]), "clFinish");
        const Moved after = machine.moved();
        std::printf("pass %u: %.1f GB/s of buffers, %.1f in, %.1f out\n", pass + 1, rate(bytes * all.size(), begin),
                    rate(after.in - before.in, begin), rate(after.out - before.out, begin));
        std::fflush(stdout);
    }
    clReleaseKernel(kernel);
    const uint32_t expected = mode == "change" ? 5 + passes : 5;
    std::vector<uint32_t> words(bytes / sizeof(uint32_t));
    for (const cl_mem each : all) {
        check(clEnqueueReadBuffer(machine.queues[1], each, CL_TRUE, 0, bytes, words.data(), 0, nullptr, nullptr),
              "clEnqueueReadBuffer");
        if (std::ranges::any_of(words, [&](uint32_t word) { return word != expected; })) {
            std::puts("wrong bytes");
            std::exit(1);
        }
    }
}

}  // namespace

int main(int count, char** words) {
    const std::string mode = count > 1 ? words[1] : "";
    if (!(mode == "link" && count == 2) && !((mode == "read" || mode == "change") && count == 5)) {
        std::fputs("oversubscription_bench link | read|change TOTAL_MIB BUFFER_MIB PASSES\n", stderr);
        return 2;
    }
    Machine machine;
    if (mode == "link") {
        measure_link(machine);
        return 0;
    }
    const auto number = [&](int index) { return std::strtoull(words[index], nullptr, 10); };
    sweep(machine, mode, number(2) << 20, number(3) << 20, static_cast<uint32_t>(number(4)));
}
