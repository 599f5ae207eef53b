// A buffer that two devices with memories of their own change in turns: how close to the link's speed it moves, and
// whether the transfer of one buffer overlaps the kernel on another.
//
// Run with POCL_DEVICES="cpu discrete discrete" and POCL_DISCRETE0_PARAMETERS / POCL_DISCRETE1_PARAMETERS such as
// "bandwidth=4G,latency=5us" (add ",peer=0" for staging through host memory); tools/run sets up the rest.
// Argument: the link's bandwidth in GB/s, to print the share of it that is reached.
#include "opencl.h"

#include <algorithm>

namespace {

using polder::bench::check;

constexpr size_t bytes = size_t{64} << 20;
constexpr int turns = 8;

double seconds() { return std::chrono::duration<double>(polder::bench::Clock::now().time_since_epoch()).count(); }

struct Devices {
    cl_context context = nullptr;
    cl_command_queue queues[2] = {};
    cl_program program = nullptr;
};

Devices open_devices() {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    cl_device_id ids[3] = {};
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 3, ids, nullptr), "clGetDeviceIDs");
    if (!ids[2])
        check(CL_DEVICE_NOT_FOUND, "three devices are needed");
    cl_int error = CL_SUCCESS;
    Devices devices;
    devices.context = clCreateContext(nullptr, 3, ids, nullptr, nullptr, &error);
    check(error, "clCreateContext");
    for (int i = 0; i < 2; ++i)
        devices.queues[i] = clCreateCommandQueueWithProperties(devices.context, ids[i + 1], nullptr, &error);
    const char* source = R"(
        kernel void touch(global int* data) { data[0] += 1; }
        kernel void work(global float* data, int rounds) {
            float value = data[get_global_id(0)];
            for (int i = 0; i < rounds; ++i)
                value = native_sin(value) + 1.0f;
            data[get_global_id(0)] = value;
        })";
    devices.program = clCreateProgramWithSource(devices.context, 1, &source, nullptr, &error);
    check(clBuildProgram(devices.program, 0, nullptr, "", nullptr, nullptr), "clBuildProgram");
    return devices;
}

cl_mem filled_buffer(const Devices& devices, int device, size_t size) {
    cl_int error = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(devices.context, CL_MEM_READ_WRITE, size, nullptr, &error);
    check(error, "clCreateBuffer");
    const cl_int zero = 0;
    check(clEnqueueFillBuffer(devices.queues[device], buffer, &zero, 4, 0, size, 0, nullptr, nullptr), "fill");
    return buffer;
}

void launch(const Devices& devices, int device, const char* name, cl_mem buffer, size_t items, int rounds) {
    cl_int error = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(devices.program, name, &error);
    check(error, "clCreateKernel");
    check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
    if (rounds > 0)
        check(clSetKernelArg(kernel, 1, sizeof(rounds), &rounds), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(devices.queues[device], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
    check(clReleaseKernel(kernel), "clReleaseKernel");
}

void finish(const Devices& devices) {
    for (cl_command_queue queue : devices.queues)
        check(clFinish(queue), "clFinish");
}

// Seconds a turn.
double ping_pong(const Devices& devices, cl_mem buffer) {
    const double begin = seconds();
    for (int turn = 0; turn < turns; ++turn) {
        launch(devices, (turn + 1) % 2, "touch", buffer, 1, 0);
        check(clFinish(devices.queues[(turn + 1) % 2]), "clFinish");
    }
    return (seconds() - begin) / turns;
}

} // namespace

int main(int count, char** arguments) {
    const double link = count > 1 ? std::strtod(arguments[1], nullptr) * 1e9 : 0;
    const Devices devices = open_devices();
    cl_mem moving = filled_buffer(devices, 0, bytes);
    cl_mem staying = filled_buffer(devices, 1, bytes / 64);
    ping_pong(devices, moving);

    double turn = 1e9;
    for (int i = 0; i < 3; ++i)
        turn = std::min(turn, ping_pong(devices, moving));
    std::printf("64 MiB in turns: %.2f ms a move, %.2f GB/s", turn * 1e3, bytes / turn / 1e9);
    if (link > 0)
        std::printf(", %.0f%% of the link", 100 * bytes / turn / link);
    std::printf("\n");

    // A kernel on device 1 that takes about as long as a move, then both at once.
    constexpr size_t items = bytes / 64 / sizeof(float);
    int rounds = 16;
    double alone = 0;
    for (; alone < turn && rounds < (1 << 20); rounds *= 2) {
        const double begin = seconds();
        launch(devices, 1, "work", staying, items, rounds);
        finish(devices);
        alone = seconds() - begin;
    }
    rounds /= 2;
    launch(devices, 0, "touch", moving, 1, 0);
    finish(devices);
    const double begin = seconds();
    launch(devices, 1, "work", staying, items, rounds);
    launch(devices, 1, "touch", moving, 1, 0);
    finish(devices);
    const double both = seconds() - begin;
    std::printf("kernel alone %.2f ms, move alone %.2f ms, both %.2f ms: %.0f%% of the sum\n", alone * 1e3, turn * 1e3,
                both * 1e3, 100 * both / (alone + turn));
    clReleaseMemObject(moving);
    clReleaseMemObject(staying);
    clReleaseProgram(devices.program);
    for (cl_command_queue queue : devices.queues)
        clReleaseCommandQueue(queue);
    clReleaseContext(devices.context);
}
