// What the proxy driver costs an application: empty kernels on another implementation's own device and on the same device
// through Polder, in turns; and a buffer that the processor and that device change in turns, beside one memcpy.
//
//   OCL_ICD_VENDORS=FOLDER-OF-polder.icd POCL_DEVICES="cpu proxy" POCL_PROXY0_PARAMETERS="icd=LIBRARY" proxy_bench LIBRARY
#include "opencl.h"

#include <CL/cl_icd.h>
#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <vector>

namespace {

using polder::bench::check;

constexpr const char* text = "kernel void nothing(global int* data, int value) { if (value) data[0] = value; }\n"
                             "kernel void touch(global int* data) { data[get_global_id(0)] += 1; }\n";
constexpr int rounds = 21;
constexpr int launches = 2000;
constexpr size_t ping_pong_bytes = size_t{64} << 20;

double now_us() { return polder::bench::microseconds_since({}); }

// The functions of a handle's implementation.
template <class Handle>
const cl_icd_dispatch& functions_of(Handle handle) {
    return **reinterpret_cast<const cl_icd_dispatch* const*>(handle);
}

// A queue of one device with an empty kernel, used without the loader.
class Subject {
public:
    Subject(cl_platform_id platform, std::vector<cl_device_id> devices, cl_device_id device)
        : cl_(functions_of(platform)) {
        const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                    reinterpret_cast<cl_context_properties>(platform), 0};
        cl_int code = CL_SUCCESS;
        context_ = cl_.clCreateContext(properties, static_cast<cl_uint>(devices.size()), devices.data(), nullptr,
                                       nullptr, &code);
        check(code, "clCreateContext");
        queue_ = queue_on(device);
        const char* source = text;
        program_ = cl_.clCreateProgramWithSource(context_, 1, &source, nullptr, &code);
        check(cl_.clBuildProgram(program_, 0, nullptr, "", nullptr, nullptr), "clBuildProgram");
        kernel_ = cl_.clCreateKernel(program_, "nothing", &code);
        const cl_mem small = buffer_of(4096);
        const cl_int zero = 0;
        cl_.clSetKernelArg(kernel_, 0, sizeof small, &small);
        cl_.clSetKernelArg(kernel_, 1, sizeof zero, &zero);
    }
    cl_command_queue queue_on(cl_device_id device) const {
        cl_int code = CL_SUCCESS;
        const cl_command_queue queue = cl_.clCreateCommandQueue(context_, device, 0, &code);
        check(code, "clCreateCommandQueue");
        return queue;
    }
    cl_mem buffer_of(size_t bytes) const {
        cl_int code = CL_SUCCESS;
        const cl_mem buffer = cl_.clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
        check(code, "clCreateBuffer");
        return buffer;
    }
    void launch() const {
        const size_t one = 1;
        check(cl_.clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &one, &one, 0, nullptr, nullptr), "a launch");
    }
    void finish() const { check(cl_.clFinish(queue_), "clFinish"); }
    // Changes the buffer on the queue's device, which needs all of it.
    void touch(cl_command_queue queue, cl_mem buffer) const {
        cl_int code = CL_SUCCESS;
        const cl_kernel kernel = cl_.clCreateKernel(program_, "touch", &code);
        cl_.clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
        const size_t one = 1;
        check(cl_.clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr), "a launch");
        check(cl_.clFinish(queue), "clFinish");
        cl_.clReleaseKernel(kernel);
    }

private:
    const cl_icd_dispatch& cl_;
    cl_context context_ = nullptr;
    cl_command_queue queue_ = nullptr;
    cl_program program_ = nullptr;
    cl_kernel kernel_ = nullptr;
};

// The smallest of several rounds, in microseconds a launch.
struct Best {
    double each_waited = 1e9;
    double in_a_batch = 1e9;
};

void measure(Best& best, const Subject& subject) {
    double begin = now_us();
    for (int i = 0; i < launches; ++i) {
        subject.launch();
        subject.finish();
    }
    best.each_waited = std::min(best.each_waited, (now_us() - begin) / launches);
    begin = now_us();
    for (int i = 0; i < launches; ++i)
        subject.launch();
    subject.finish();
    best.in_a_batch = std::min(best.in_a_batch, (now_us() - begin) / launches);
}

void measure_launches(const Subject& own, const Subject& proxy) {
    Best own_best;
    Best proxy_best;
    for (int round = 0; round < rounds; ++round) {
        measure(own_best, own);
        measure(proxy_best, proxy);
    }
    std::printf("empty kernel, enqueue + finish: own %.2f us, proxy %.2f us, %+.2f us\n", own_best.each_waited,
                proxy_best.each_waited, proxy_best.each_waited - own_best.each_waited);
    std::printf("empty kernel, batch, each:      own %.2f us, proxy %.2f us, %+.2f us\n", own_best.in_a_batch,
                proxy_best.in_a_batch, proxy_best.in_a_batch - own_best.in_a_batch);
}

void measure_ping_pong(const Subject& proxy, cl_device_id cpu, cl_device_id foreign) {
    const cl_command_queue on_cpu = proxy.queue_on(cpu);
    const cl_command_queue on_foreign = proxy.queue_on(foreign);
    const cl_mem buffer = proxy.buffer_of(ping_pong_bytes);
    std::vector<char> here(ping_pong_bytes, 1);
    std::vector<char> there(ping_pong_bytes, 2);
    double memcpy_us = 1e9;
    double to_us = 1e9;
    double back_us = 1e9;
    const auto time = [](double& best, auto&& work) {
        const double begin = now_us();
        work();
        best = std::min(best, now_us() - begin);
    };
    proxy.touch(on_cpu, buffer);
    proxy.touch(on_foreign, buffer);
    proxy.touch(on_cpu, buffer);
    int sum = 0;  // so that the copies are not left out
    for (int round = 0; round < rounds; ++round) {
        here[static_cast<size_t>(round)] = static_cast<char>(round);
        time(memcpy_us, [&] { std::memcpy(there.data(), here.data(), ping_pong_bytes); });
        sum += there[static_cast<size_t>(round)];
        time(to_us, [&] { proxy.touch(on_foreign, buffer); });
        time(back_us, [&] { proxy.touch(on_cpu, buffer); });
    }
    const auto speed = [](double us) { return static_cast<double>(ping_pong_bytes) / us / 1000; };
    if (sum != rounds * (rounds - 1) / 2)
        std::printf("memcpy did not copy\n");
    std::printf("64 MiB: memcpy %.2f GB/s; to the device and a kernel %.2f GB/s, %.0f%%; back %.2f GB/s, %.0f%%\n",
                speed(memcpy_us), speed(to_us), 100 * memcpy_us / to_us, speed(back_us), 100 * memcpy_us / back_us);
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
    std::vector<cl_device_id> devices(16);
    cl_uint count = 0;
    check(functions_of(platform).clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 16, devices.data(), &count),
          "clGetDeviceIDs");
    devices.resize(count);
    return devices;
}

// The first platform of a library.
cl_platform_id platform_of(const char* library) {
    void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void* get = handle ? dlsym(handle, "clIcdGetPlatformIDsKHR") : nullptr;
    if (void* const by_name = handle && !get ? dlsym(handle, "clGetExtensionFunctionAddress") : nullptr)
        get = reinterpret_cast<cl_api_clGetExtensionFunctionAddress>(by_name)("clIcdGetPlatformIDsKHR");
    cl_platform_id platform = nullptr;
    if (get)
        check(reinterpret_cast<clIcdGetPlatformIDsKHR_fn>(get)(1, &platform, nullptr), "clIcdGetPlatformIDsKHR");
    if (platform)
        return platform;
    std::fprintf(stderr, "%s: no platform\n", library);
    std::exit(1);
}

}  // namespace

int main(int count, char** words) {
    const char* const library = count > 1 ? words[1] : "libpocl.so.2";
    // Polder first: it hides POCL_DEVICES while the other one starts.
    cl_platform_id polder = nullptr;
    check(clGetPlatformIDs(1, &polder, nullptr), "clGetPlatformIDs");
    const std::vector<cl_device_id> devices = devices_of(polder);
    if (devices.size() < 2) {
        std::fprintf(stderr, "POCL_DEVICES must be \"cpu proxy\"\n");
        return 1;
    }
    const cl_platform_id other = platform_of(library);
    const cl_device_id own_device = devices_of(other).at(0);
    char name[256] = {};
    functions_of(other).clGetDeviceInfo(own_device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr);
    std::printf("%s\n", name);
    const Subject own(other, {own_device}, own_device);
    const Subject proxy(polder, devices, devices[1]);
    measure_launches(own, proxy);
    measure_ping_pong(proxy, devices[0], devices[1]);
}
