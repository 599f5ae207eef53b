// Computes one picture by all devices of one context: a processor, GPUs, devices of other OpenCL implementations.
//
//     picture FILE.ppm|FILE.png [WIDTH HEIGHT]
//
// One buffer holds the picture. Each device computes a band of rows in a sub-buffer, and one map reads the whole picture. The program
// need not know in which memory each band is. It uses only the C functions of OpenCL, and prints which device computed which rows, and how many
// bytes were moved from its memory (if the implementation has cl_polder_memory_statistics).
#include <CL/cl_ext_polder.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#ifdef PICTURE_HAS_PNG
#include <png.h>
#endif

namespace {

constexpr char source[] = {
#include "picture.cl.inc"
    , 0};

[[noreturn]] void give_up(const char* what, cl_int error) {
    std::fprintf(stderr, "picture: %s failed: error %d\n", what, error);
    std::exit(1);
}
void check(cl_int error, const char* what) {
    if (error != CL_SUCCESS)
        give_up(what, error);
}

struct Size {
    cl_uint width = 1280;
    cl_uint height = 720;
    [[nodiscard]] size_t row_bytes() const { return size_t{4} * width; }
    [[nodiscard]] size_t bytes() const { return row_bytes() * height; }
};

struct Band {
    cl_device_id device;
    std::string name;
    cl_uint first_row;
    cl_uint end_row;
    cl_command_queue queue = nullptr;
    cl_mem pixels = nullptr;
    cl_event computed = nullptr;
};

std::string name_of(cl_device_id device) {
    char name[256] = {};
    check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr), "clGetDeviceInfo");
    return name;
}

// Sub-buffers begin at multiples of every device's alignment.
cl_uint rows_per_step(const std::vector<cl_device_id>& devices, Size size) {
    cl_uint rows = 1;
    for (cl_device_id device : devices) {
        cl_uint bits = 0;
        check(clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr), "clGetDeviceInfo");
        while (rows * size.row_bytes() % (bits / 8) != 0)
            rows *= 2;
    }
    return rows;
}

std::vector<Band> divide(const std::vector<cl_device_id>& devices, Size size) {
    const cl_uint step = rows_per_step(devices, size);
    const cl_uint steps = (size.height + step - 1) / step;
    const auto count = static_cast<cl_uint>(devices.size());
    std::vector<Band> bands;
    for (cl_uint i = 0; i < count; ++i) {
        const cl_uint first = std::min(size.height, steps * i / count * step);
        const cl_uint end = std::min(size.height, steps * (i + 1) / count * step);
        if (first < end)
            bands.push_back({devices[i], name_of(devices[i]), first, end});
    }
    return bands;
}

cl_program build(cl_context context) {
    const char* text = source;
    cl_int error = CL_SUCCESS;
    const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
    check(error, "clCreateProgramWithSource");
    error = clBuildProgram(program, 0, nullptr, "", nullptr, nullptr);
    if (error == CL_SUCCESS)
        return program;
    cl_uint count = 0;
    clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof count, &count, nullptr);
    std::vector<cl_device_id> devices(count);
    clGetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), devices.data(), nullptr);
    for (cl_device_id device : devices) {
        std::vector<char> log(size_t{1} << 16);
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
        std::fprintf(stderr, "%s: %s\n", name_of(device).c_str(), log.data());
    }
    give_up("clBuildProgram", error);
}

void start(cl_context context, cl_program program, cl_mem picture, Band& band, Size size) {
    cl_int error = CL_SUCCESS;
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    band.queue = clCreateCommandQueueWithProperties(context, band.device, properties, &error);
    check(error, "clCreateCommandQueueWithProperties");
    const cl_buffer_region region{band.first_row * size.row_bytes(),
                                  (band.end_row - band.first_row) * size.row_bytes()};
    band.pixels = clCreateSubBuffer(picture, CL_MEM_WRITE_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    check(error, "clCreateSubBuffer");
    const cl_kernel kernel = clCreateKernel(program, "render", &error);
    check(error, "clCreateKernel");
    check(clSetKernelArg(kernel, 0, sizeof band.pixels, &band.pixels), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof band.first_row, &band.first_row), "clSetKernelArg");
    check(clSetKernelArg(kernel, 2, sizeof size.width, &size.width), "clSetKernelArg");
    check(clSetKernelArg(kernel, 3, sizeof size.height, &size.height), "clSetKernelArg");
    const size_t global[2] = {size.width, band.end_row - band.first_row};
    check(clEnqueueNDRangeKernel(band.queue, kernel, 2, nullptr, global, nullptr, 0, nullptr, &band.computed),
          "clEnqueueNDRangeKernel");
    check(clFlush(band.queue), "clFlush");
    check(clReleaseKernel(kernel), "clReleaseKernel");
}

double ms_of(cl_event event) {
    cl_ulong begin = 0, end = 0;
    check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, nullptr),
          "clGetEventProfilingInfo");
    check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr),
          "clGetEventProfilingInfo");
    return static_cast<double>(end - begin) * 1e-6;
}

// The bytes moved from the device's memory to any other; 0 when the implementation does not report it.
cl_ulong moved_bytes(cl_context context, cl_platform_id platform, cl_device_id device) {
    const auto list = reinterpret_cast<clGetMemoryTransfersPOLDER_fn>(
        clGetExtensionFunctionAddressForPlatform(platform, "clGetMemoryTransfersPOLDER"));
    cl_uint space = 0, count = 0;
    if (!list || list(context, 0, nullptr, &count) != CL_SUCCESS || count == 0 ||
        clGetDeviceInfo(device, CL_DEVICE_MEMORY_SPACE_POLDER, sizeof space, &space, nullptr) != CL_SUCCESS)
        return 0;
    std::vector<cl_memory_transfers_polder> transfers(count);
    check(list(context, count, transfers.data(), nullptr), "clGetMemoryTransfersPOLDER");
    cl_ulong bytes = 0;
    for (const cl_memory_transfers_polder& entry : transfers)
        bytes += entry.from_space == space && entry.to_space != space && space != 0 ? entry.moved_bytes : 0;
    return bytes;
}

bool write_ppm(const char* path, const unsigned char* pixels, Size size) {
    std::FILE* const file = std::fopen(path, "wb");
    if (!file)
        return false;
    std::fprintf(file, "P6\n%u %u\n255\n", size.width, size.height);
    for (size_t i = 0; i < size_t{size.width} * size.height; ++i)
        std::fwrite(pixels + 4 * i, 1, 3, file);
    const bool is_written = std::ferror(file) == 0;
    return std::fclose(file) == 0 && is_written;
}

bool write(const char* path, const unsigned char* pixels, Size size) {
#ifdef PICTURE_HAS_PNG
    if (std::strlen(path) > 4 && std::strcmp(path + std::strlen(path) - 4, ".png") == 0) {
        png_image image{};
        image.version = PNG_IMAGE_VERSION;
        image.width = size.width;
        image.height = size.height;
        image.format = PNG_FORMAT_RGBA;
        return png_image_write_to_file(&image, path, 0, pixels, 0, nullptr) != 0;
    }
#endif
    return write_ppm(path, pixels, size);
}

void run(const char* path, Size size) {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    cl_uint count = 0;
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count), "clGetDeviceIDs");
    std::vector<cl_device_id> devices(count);
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr), "clGetDeviceIDs");

    cl_int error = CL_SUCCESS;
    const cl_context context = clCreateContext(nullptr, count, devices.data(), nullptr, nullptr, &error);
    check(error, "clCreateContext");
    const cl_program program = build(context);
    const cl_mem picture =
        clCreateBuffer(context, CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY, size.bytes(), nullptr, &error);
    check(error, "clCreateBuffer");

    std::vector<Band> bands = divide(devices, size);
    for (Band& band : bands)
        start(context, program, picture, band, size);
    std::vector<cl_event> computed;
    for (const Band& band : bands)
        computed.push_back(band.computed);
    const cl_command_queue reader = bands.front().queue;
    void* const pixels = clEnqueueMapBuffer(reader, picture, CL_TRUE, CL_MAP_READ, 0, size.bytes(),
                                            static_cast<cl_uint>(computed.size()), computed.data(), nullptr, &error);
    check(error, "clEnqueueMapBuffer");
    if (!write(path, static_cast<const unsigned char*>(pixels), size)) {
        std::fprintf(stderr, "picture: cannot write %s\n", path);
        std::exit(1);
    }
    std::printf("%s: %u x %u pixels, %zu bytes in one buffer\n", path, size.width, size.height, size.bytes());
    for (const Band& band : bands)
        std::printf("rows %4u to %4u  %9.1f ms  %9llu bytes moved  %s\n", band.first_row, band.end_row - 1,
                    ms_of(band.computed), static_cast<unsigned long long>(moved_bytes(context, platform, band.device)),
                    band.name.c_str());

    check(clEnqueueUnmapMemObject(reader, picture, pixels, 0, nullptr, nullptr), "clEnqueueUnmapMemObject");
    for (const Band& band : bands) {
        check(clFinish(band.queue), "clFinish");
        clReleaseEvent(band.computed);
        clReleaseMemObject(band.pixels);
        clReleaseCommandQueue(band.queue);
    }
    clReleaseMemObject(picture);
    clReleaseProgram(program);
    clReleaseContext(context);
}

// 0 when the text is not a valid number of pixels.
cl_uint pixels_of(const char* text) {
    char* end = nullptr;
    const unsigned long number = std::strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && number <= 16384 ? static_cast<cl_uint>(number) : 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
    Size size;
    if (argument_count == 4) {
        size.width = pixels_of(arguments[2]);
        size.height = pixels_of(arguments[3]);
    }
    if ((argument_count != 2 && argument_count != 4) || size.width == 0 || size.height == 0) {
        std::fprintf(stderr, "usage: picture FILE.ppm|FILE.png [WIDTH HEIGHT]  (at most 16384)\n");
        return 2;
    }
    run(arguments[1], size);
}
