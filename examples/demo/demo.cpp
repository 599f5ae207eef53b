// Computes a picture in tiles by all devices of one context, writes it as a PNG, and prints what was allocated
// where, which bytes moved between which memories, and how long it took.
//
// Two buffers hold the whole picture: escape times and colours. A tile is a range of rows, hence a sub-buffer of
// each. One host thread for each device takes the next tile when its device has finished one, and shades its tiles afterwards.
// Shading reads one row of each neighbouring tile, which another device may have computed: only those rows move between
// memories.
#include "opencl.h"
#include "statistics.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <png.h>

namespace {

constexpr char kernel_source[] = {
#include "kernels.cl.inc"
    , 0};

constexpr cl_uint width = 1920;
constexpr cl_uint height = 1080;
constexpr cl_uint rows_per_tile = 60;
constexpr cl_uint tile_count = height / rows_per_tile;
constexpr cl_uint iterations_max = 2000;
constexpr cl_float2 centre = {{-0.7453f, 0.1127f}};
constexpr float scale = 0.0065f;

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Rows [begin, end) of a buffer with 4 bytes for each pixel.
cl::Buffer rows_of(cl::Buffer& picture, cl_mem_flags access, cl_uint begin, cl_uint end) {
    const size_t row_bytes = size_t{4} * width;
    const cl_buffer_region region{begin * row_bytes, (end - begin) * row_bytes};
    return picture.createSubBuffer(access, CL_BUFFER_CREATE_TYPE_REGION, &region);
}

class Picture {
public:
    Picture(const cl::Context& context, const cl::Program& program)
        : program_(program), times_(context, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, size_t{4} * width * height),
          colours_(context, CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY, size_t{4} * width * height) {}

    cl::Event compute_escape_times(cl::CommandQueue& queue, cl_uint tile) {
        const cl_uint first = tile * rows_per_tile;
        cl::Kernel kernel(program_, "escape");
        const cl::Buffer times = rows_of(times_, CL_MEM_WRITE_ONLY, first, first + rows_per_tile);
        set_arguments(kernel, times, first, width, height, centre, scale, iterations_max);
        return enqueue(queue, kernel);
    }

    cl::Event shade(cl::CommandQueue& queue, cl_uint tile) {
        const cl_uint first = tile * rows_per_tile, last = first + rows_per_tile;
        const cl_uint above = first > 0 ? 1 : 0, below = last < height ? 1 : 0;
        cl::Kernel kernel(program_, "shade");
        const cl::Buffer times = rows_of(times_, CL_MEM_READ_ONLY, first - above, last + below);
        const cl::Buffer colours = rows_of(colours_, CL_MEM_WRITE_ONLY, first, last);
        set_arguments(kernel, times, above, above + rows_per_tile + below, colours, width);
        return enqueue(queue, kernel);
    }

    std::vector<unsigned char> read(cl::CommandQueue& queue) const {
        std::vector<unsigned char> pixels(size_t{4} * width * height);
        queue.enqueueReadBuffer(colours_, CL_TRUE, 0, pixels.size(), pixels.data());
        return pixels;
    }

private:
    template <class... Arguments>
    static void set_arguments(cl::Kernel& kernel, const Arguments&... arguments) {
        cl_uint index = 0;
        (kernel.setArg(index++, arguments), ...);
    }
    static cl::Event enqueue(cl::CommandQueue& queue, const cl::Kernel& kernel) {
        cl::Event event;
        queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(width, rows_per_tile), cl::NullRange, nullptr,
                                   &event);
        return event;
    }

    cl::Program program_;
    cl::Buffer times_;
    cl::Buffer colours_;
};

using TileWork = std::function<cl::Event(cl::CommandQueue& queue, cl_uint tile)>;

double kernel_ms(const cl::Event& event) {
    const cl_ulong start = event.getProfilingInfo<CL_PROFILING_COMMAND_START>();
    return static_cast<double>(event.getProfilingInfo<CL_PROFILING_COMMAND_END>() - start) * 1e-6;
}

// What each device did, and which one computed each tile.
struct Work {
    std::vector<cl::CommandQueue> queues;
    std::vector<DeviceReport> reports;
    std::vector<size_t> device_of_tile = std::vector<size_t>(tile_count);

    void run(size_t device, cl_uint tile, const TileWork& work) {
        const cl::Event event = work(queues[device], tile);
        event.wait();
        reports[device].kernels_ms += kernel_ms(event);
    }
    // Runs one host thread for each device. An exception in one of them is thrown again here.
    void on_all_devices(const std::function<void(size_t device)>& host) {
        std::vector<std::future<void>> hosts;
        hosts.reserve(queues.size());
        for (size_t device = 0; device < queues.size(); ++device)
            hosts.push_back(std::async(std::launch::async, host, device));
        for (std::future<void>& done : hosts)
            done.get();
    }
};

// Every device takes tiles until none is left.
void share_tiles(Work& work, const TileWork& on_tile) {
    std::atomic<cl_uint> next_tile{0};
    work.on_all_devices([&](size_t device) {
        for (cl_uint tile = next_tile++; tile < tile_count; tile = next_tile++) {
            work.run(device, tile, on_tile);
            work.device_of_tile[tile] = device;
            work.reports[device].tiles += 1;
        }
    });
}

// Every device continues with the tiles that it has computed.
void continue_tiles(Work& work, const TileWork& on_tile) {
    work.on_all_devices([&](size_t device) {
        for (cl_uint tile = 0; tile < tile_count; ++tile)
            if (work.device_of_tile[tile] == device)
                work.run(device, tile, on_tile);
    });
}

cl::Program build(const cl::Context& context) {
    cl::Program program(context, kernel_source);
    try {
        program.build("-cl-fast-relaxed-math");
    } catch (const cl::BuildError& error) {
        for (const auto& [device, log] : error.getBuildLog())
            std::fprintf(stderr, "%s\n", log.c_str());
        throw;
    }
    return program;
}

bool write_png(const char* path, const std::vector<unsigned char>& pixels) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width;
    image.height = height;
    image.format = PNG_FORMAT_RGBA;
    return png_image_write_to_file(&image, path, 0, pixels.data(), 0, nullptr) != 0;
}

int run(const char* path) {
    std::vector<cl::Device> devices;
    cl::Platform::getDefault().getDevices(CL_DEVICE_TYPE_ALL, &devices);
    const cl::Context context(devices);
    Work work;
    for (const cl::Device& device : devices) {
        work.queues.emplace_back(context, device, cl::QueueProperties::Profiling);
        work.reports.push_back({device});
    }

    const auto start = Clock::now();
    Picture picture(context, build(context));
    const double build_ms = ms_since(start);

    const auto computing = Clock::now();
    share_tiles(work, [&](auto& queue, cl_uint tile) { return picture.compute_escape_times(queue, tile); });
    continue_tiles(work, [&](auto& queue, cl_uint tile) { return picture.shade(queue, tile); });
    const double compute_ms = ms_since(computing);

    const auto reading = Clock::now();
    const std::vector<unsigned char> pixels = picture.read(work.queues.front());
    const double read_ms = ms_since(reading);

    if (!write_png(path, pixels)) {
        std::fprintf(stderr, "cannot write %s\n", path);
        return 1;
    }
    std::printf("%s: %u x %u pixels in %u tiles\n", path, width, height, tile_count);
    print_report(context, work.reports);
    std::printf("\nbuilding the program %.1f ms, computing the picture %.1f ms, reading it %.1f ms\n", build_ms,
                compute_ms, read_ms);
    return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 2) {
        std::fprintf(stderr, "usage: demo PICTURE.png\n");
        return 2;
    }
    try {
        return run(arguments[1]);
    } catch (const cl::Error& error) {
        std::fprintf(stderr, "%s failed: error %d\n", error.what(), error.err());
        return 1;
    }
}
