// Rows about what commands cost: buffers, launches, events, copies, maps, builds.
#include "workload.h"

#include <CL/cl_ext.h>
#include <cstring>

namespace bench {
namespace {

constexpr size_t kibibyte = 1 << 10, mebibyte = 1 << 20;
constexpr char empty_source[] = "kernel void empty(global int* out) { }";

double create_and_release() {
    const Session session;
    return best_of(5, 20'000, [&] { clReleaseMemObject(session.buffer(4 * kibibyte)); });
}

void fill_64_bytes(const Session& session, cl_mem object) {
    const cl_uint pattern = 7;
    check(clEnqueueFillBuffer(session.queue, object, &pattern, sizeof pattern, 0, 64, 0, nullptr, nullptr),
          "clEnqueueFillBuffer");
}

template <size_t bytes>
double first_use() {
    const Session session;
    return best_of(5, 200, [&] {
        cl_mem object = session.buffer(bytes);
        fill_64_bytes(session, object);
        session.finish();
        clReleaseMemObject(object);
    });
}

template <int count, size_t bytes>
double many_live_buffers() {
    const Session session;
    std::vector<cl_mem> objects(count);
    return best_of(2, 1,
                   [&] {
                       for (cl_mem& object : objects) {
                           object = session.buffer(bytes);
                           fill_64_bytes(session, object);
                       }
                       session.finish();
                       for (cl_mem object : objects)
                           clReleaseMemObject(object);
                   }) /
           count;
}

cl_kernel empty_kernel(const Session& session) {
    cl_kernel kernel = session.kernel(empty_source, "empty");
    set_arguments(kernel, session.buffer(64));
    return kernel;
}

double launch_and_finish(size_t items, size_t group, int calls) {
    const Session session;
    cl_kernel kernel = empty_kernel(session);
    return best_of(5, calls, [&] {
        session.launch(kernel, items, group);
        session.finish();
    });
}
double empty_and_finish() { return launch_and_finish(1, 1, 5'000); }
double sixteen_groups() { return launch_and_finish(16 * 64, 64, 2'000); }

double empty_batch() {
    const Session session;
    cl_kernel kernel = empty_kernel(session);
    constexpr int count = 20'000;
    return best_of(4, 1,
                   [&] {
                       for (int i = 0; i < count; ++i)
                           session.launch(kernel, 1, 1);
                       session.finish();
                   }) /
           count;
}

template <class Function>
Function by_name(const Session& session, const char* name) {
    cl_platform_id platform = nullptr;
    check(clGetDeviceInfo(session.device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr), "clGetDeviceInfo");
    void* const found = clGetExtensionFunctionAddressForPlatform(platform, name);
    if (!found) {
        std::fprintf(stderr, "the implementation has no %s\n", name);
        std::exit(1);
    }
    return reinterpret_cast<Function>(found);
}

// One command buffer, enqueued again and again.
double replayed_batch() {
    const Session session;
    cl_kernel kernel = empty_kernel(session);
    constexpr int count = 1'000;
    const size_t one = 1;
    cl_int status = CL_SUCCESS;
    cl_command_buffer_khr buffer =
        by_name<clCreateCommandBufferKHR_fn>(session, "clCreateCommandBufferKHR")(1, &session.queue, nullptr, &status);
    check(status, "clCreateCommandBufferKHR");
    const auto record = by_name<clCommandNDRangeKernelKHR_fn>(session, "clCommandNDRangeKernelKHR");
    for (int i = 0; i < count; ++i)
        check(record(buffer, nullptr, nullptr, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr, nullptr),
              "clCommandNDRangeKernelKHR");
    check(by_name<clFinalizeCommandBufferKHR_fn>(session, "clFinalizeCommandBufferKHR")(buffer), "finalize");
    const auto enqueue = by_name<clEnqueueCommandBufferKHR_fn>(session, "clEnqueueCommandBufferKHR");
    return best_of(4, 20,
                   [&] {
                       check(enqueue(0, nullptr, buffer, 0, nullptr, nullptr), "clEnqueueCommandBufferKHR");
                       session.finish();
                   }) /
           count;
}

double event_chain() {
    const Session session(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_kernel kernel = empty_kernel(session);
    constexpr int count = 10'000;
    const size_t one = 1;
    return best_of(4, 1,
                   [&] {
                       std::vector<cl_event> events(count);
                       for (int i = 0; i < count; ++i) {
                           const cl_uint waits = i < 2 ? static_cast<cl_uint>(i) : 2;
                           check(clEnqueueNDRangeKernel(session.queue, kernel, 1, nullptr, &one, &one, waits,
                                                        waits ? &events[i - waits] : nullptr, &events[i]),
                                 "clEnqueueNDRangeKernel");
                       }
                       session.finish();
                       for (cl_event event : events)
                           clReleaseEvent(event);
                   }) /
           count;
}

// 256 MiB, moved by `command(session, one object, another, host memory)`.
template <class Command>
double large(Command&& command) {
    const Session session;
    constexpr size_t bytes = 256 * mebibyte;
    cl_mem one = session.buffer(bytes), other = session.buffer(bytes);
    std::vector<char> host(bytes, 1);
    check(clEnqueueWriteBuffer(session.queue, one, CL_TRUE, 0, bytes, host.data(), 0, nullptr, nullptr), "write");
    return best_of(4, 1, [&] {
        check(command(session, one, other, host.data(), bytes), "the command");
        session.finish();
    });
}
double write_256m() {
    return large([](const Session& session, cl_mem one, cl_mem, char* host, size_t bytes) {
        return clEnqueueWriteBuffer(session.queue, one, CL_TRUE, 0, bytes, host, 0, nullptr, nullptr);
    });
}
double read_256m() {
    return large([](const Session& session, cl_mem one, cl_mem, char* host, size_t bytes) {
        return clEnqueueReadBuffer(session.queue, one, CL_TRUE, 0, bytes, host, 0, nullptr, nullptr);
    });
}
double copy_256m() {
    return large([](const Session& session, cl_mem one, cl_mem other, char*, size_t bytes) {
        return clEnqueueCopyBuffer(session.queue, one, other, 0, 0, bytes, 0, nullptr, nullptr);
    });
}
double fill_256m() {
    return large([](const Session& session, cl_mem one, cl_mem, char*, size_t bytes) {
        const cl_uint pattern = 9;
        return clEnqueueFillBuffer(session.queue, one, &pattern, sizeof pattern, 0, bytes, 0, nullptr, nullptr);
    });
}
double map_256m() {
    return large([](const Session& session, cl_mem one, cl_mem, char*, size_t bytes) {
        cl_int status = CL_SUCCESS;
        void* pointer =
            clEnqueueMapBuffer(session.queue, one, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr, nullptr, &status);
        check(status, "clEnqueueMapBuffer");
        return clEnqueueUnmapMemObject(session.queue, one, pointer, 0, nullptr, nullptr);
    });
}

// Nine kernels that no cache has seen: the source differs from one measurement to the next.
double build_and_first_launch() {
    const Session session;
    std::string source = "#define SEED " + std::to_string(Clock::now().time_since_epoch().count() & 0xffffff) + "\n";
    for (int i = 0; i < 9; ++i)
        source += "kernel void k" + std::to_string(i) + R"((global float* a, global const float* b, int n) {
            int i = get_global_id(0);
            if (i < n) a[i] = sqrt(b[i]) * )" +
                  std::to_string(i + 1) + R"(.5f + pow(b[i], 1.3f) + SEED;
            for (int j = 0; j < n; ++j) a[i] += b[j] * exp(b[i] - j);
        }
)";
    cl_mem out = session.buffer(4096), in = session.buffer(4096);
    const cl_int count = 16;
    const auto start = Clock::now();
    cl_kernel kernel = session.kernel(source.c_str(), "k4");
    set_arguments(kernel, out, in, count);
    session.launch(kernel, 16, 16);
    session.finish();
    return seconds_since(start);
}

constexpr Row rows[] = {
    {"create + release a buffer", 0.5, create_and_release},
    {"create, first use, release: 4 KiB", 0.1, first_use<4 * kibibyte>},
    {"create, first use, release: 1 MiB", 0.1, first_use<mebibyte>},
    {"create, first use, release: 64 MiB", 0.1, first_use<64 * mebibyte>},
    {"20,000 live buffers, each", 0.2, many_live_buffers<20'000, 4 * kibibyte>},
    {"20,000 live buffers of 1 KiB, each", 0.2, many_live_buffers<20'000, kibibyte>},
    {"100,000 live buffers of 1 KiB, each", 0.2, many_live_buffers<100'000, kibibyte>},
    {"1,000,000 live buffers of 1 KiB, each", 0.2, many_live_buffers<1'000'000, kibibyte>},
    {"empty kernel, enqueue + finish", 0.1, empty_and_finish},
    {"empty kernel, batch of 20,000, each", 0.5, empty_batch},
    {"1,000 recorded kernels, replayed, each", 0.2, replayed_batch},
    {"10,000 kernels chained by events, each", 0.5, event_chain},
    {"16 work-groups, enqueue + finish", 0.2, sixteen_groups},
    {"write 256 MiB", 1, write_256m},
    {"read 256 MiB", 1, read_256m},
    {"copy 256 MiB", 1, copy_256m},
    {"fill 256 MiB", 1, fill_256m},
    {"map 256 MiB for reading + unmap", 0.2, map_256m},
    {"build 9 kernels + first launch, cold", 0.5, build_and_first_launch},
};

} // namespace

std::span<const Row> command_rows() { return rows; }

} // namespace bench
