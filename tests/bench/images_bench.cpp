// How quickly kernels read images, compared with the same kernels over buffers. Each work-item writes the sum of what it reads to a buffer.
//
//   OCL_ICD_VENDORS=build/packaging/vendors build/tests/bench/images_bench [edge [milliseconds per figure [format]]]
//
// Prints, for each format and way of reading, the least time of a launch with an image and with a buffer in microseconds, and the speed of
// the image as a fraction of that of the buffer. Both kernels run in turns. Images have `edge` rows (1024) of as many elements.
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace polder::bench;

struct Format {
    const char* name;
    cl_channel_order order;
    cl_channel_type channel;
    // In OpenCL C: the function, the channels that are used, their type, an element of a buffer at the index `place`.
    const char *read, *channels, *result, *element, *loaded;
};
constexpr Format formats[] = {
    {"float", CL_RGBA, CL_FLOAT, "read_imagef", "xyzw", "float4", "float4", "in[place]"},
    {"unorm8", CL_RGBA, CL_UNORM_INT8, "read_imagef", "xyzw", "float4", "uchar4",
     "convert_float4(in[place]) * (1.0f / 255.0f)"},
    {"uint8", CL_RGBA, CL_UNSIGNED_INT8, "read_imageui", "xyzw", "uint4", "uchar4", "convert_uint4(in[place])"},
    {"half", CL_RGBA, CL_HALF_FLOAT, "read_imagef", "xyzw", "float4", "half", "vload_half4(place, in)"},
    {"unorm16", CL_RGBA, CL_UNORM_INT16, "read_imagef", "xyzw", "float4", "ushort4",
     "convert_float4(in[place]) * (1.0f / 65535.0f)"},
    {"rg float", CL_RG, CL_FLOAT, "read_imagef", "xy", "float2", "float2", "in[place]"},
    {"rg un8", CL_RG, CL_UNORM_INT8, "read_imagef", "xy", "float2", "uchar2",
     "convert_float2(in[place]) * (1.0f / 255.0f)"},
    {"r float", CL_R, CL_FLOAT, "read_imagef", "x", "float", "float", "in[place]"},
    {"r unorm8", CL_R, CL_UNORM_INT8, "read_imagef", "x", "float", "uchar",
     "convert_float(in[place]) * (1.0f / 255.0f)"},
    {"r uint8", CL_R, CL_UNSIGNED_INT8, "read_imageui", "x", "uint", "uchar", "convert_uint(in[place])"},
    {"r half", CL_R, CL_HALF_FLOAT, "read_imagef", "x", "float", "half", "vload_half(place, in)"},
};

struct Way {
    const char* name;
    const char *sampler, *coordinates;  // in OpenCL C, of the element x, y
};
#define NORMALIZED "(float2)((x + 0.5f) / get_global_size(0), (y + 0.5f) / get_global_size(1))"
constexpr Way ways[] = {
    {"no sampler", "", "(int2)(x, y)"},
    {"edge, integers", "CLK_ADDRESS_CLAMP_TO_EDGE", "(int2)(x, y)"},
    {"edge, floats", "CLK_ADDRESS_CLAMP_TO_EDGE", "(float2)(x + 0.5f, y + 0.5f)"},
    {"border, integers", "CLK_ADDRESS_CLAMP", "(int2)(x, y)"},
    {"border, floats", "CLK_ADDRESS_CLAMP", "(float2)(x + 0.5f, y + 0.5f)"},
    {"edge, normalized", "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE", NORMALIZED},
    {"border, normalized", "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP", NORMALIZED},
    {"repeated", "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT", NORMALIZED},
    {"mirrored", "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_MIRRORED_REPEAT", NORMALIZED},
};
#undef NORMALIZED

// Reads of neighbours are clamped in the kernel with a buffer.
std::string source_of(const Format& format, const Way& way, int radius) {
    const bool has_sampler = *way.sampler != '\0';
    const std::string loops = "const int r = " + std::to_string(radius) +
                              ";\n"
                              "for (int j = -r; j <= r; ++j) for (int i = -r; i <= r; ++i) {\n"
                              "const int x = (int)get_global_id(0) + i, y = (int)get_global_id(1) + j;\n";
    const std::string result = format.result;
    const std::string begin = result + " sum = 0;\n" + loops;
    const std::string end = "}\nout[get_global_id(1) * get_global_size(0) + get_global_id(0)] = sum;\n}\n";
    std::string source =
        has_sampler ? std::string("constant sampler_t s = CLK_FILTER_NEAREST | ") + way.sampler + ";\n" : "";
    source += "kernel void image(read_only image2d_t in, global " + result + "* out) {\n" + begin +
              "sum += " + format.read + "(in, " + (has_sampler ? "s, " : "") + way.coordinates + ")." +
              format.channels + ";\n" + end;
    const char* const place = radius == 0 ? "y * (int)get_global_size(0) + x"
                                          : "clamp(y, 0, (int)get_global_size(1) - 1) * (int)get_global_size(0) + "
                                            "clamp(x, 0, (int)get_global_size(0) - 1)";
    source += std::string("kernel void buffer(global const ") + format.element + "* in, global " + result +
              "* out) {\n" + begin + "const int place = " + place + ";\nsum += " + format.loaded + ";\n" + end;
    return source;
}

class Images {
public:
    Images(size_t edge, double milliseconds) : edge_(edge), duration_us_(milliseconds * 1000) {
        queue_ = machine_.make_queue();
        bytes_.resize(edge * edge * 16);
        // Small positive floats, and bytes of all kinds.
        for (size_t i = 0; i < bytes_.size(); ++i)
            bytes_[i] = i % 4 == 3 ? 0x3f : static_cast<unsigned char>(i * 7 + i / 1021);
        in_ = machine_.buffer(bytes_.size());
        check(clEnqueueWriteBuffer(queue_, in_, CL_TRUE, 0, bytes_.size(), bytes_.data(), 0, nullptr, nullptr),
              "write");
        out_ = machine_.buffer(bytes_.size());
    }
    Images(const Images&) = delete;
    Images& operator=(const Images&) = delete;
    ~Images() {
        clReleaseMemObject(in_);
        clReleaseMemObject(out_);
        clReleaseCommandQueue(queue_);
    }

    void measure(const Format& format, const Way& way, int radius) {
        const cl_mem image = make_image(format);
        const cl_program program = machine_.build(source_of(format, way, radius).c_str());
        const cl_kernel kernels[] = {OneDevice::kernel_of(program, "image"), OneDevice::kernel_of(program, "buffer")};
        const cl_mem inputs[] = {image, in_};
        double least[] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
        for (size_t i = 0; i < 2; ++i) {
            check(clSetKernelArg(kernels[i], 0, sizeof(cl_mem), &inputs[i]), "clSetKernelArg");
            check(clSetKernelArg(kernels[i], 1, sizeof(cl_mem), &out_), "clSetKernelArg");
            for (int round = 0; round < 10; ++round)
                launch(kernels[i]);
        }
        for (const auto begin = Clock::now(); microseconds_since(begin) < duration_us_;)
            for (size_t i = 0; i < 2; ++i)
                least[i] = std::min(least[i], launch(kernels[i]));
        std::printf("%-8s %d x %d  %-20s %9.1f %9.1f %6.2f\n", format.name, 2 * radius + 1, 2 * radius + 1, way.name,
                    least[0], least[1], least[1] / least[0]);
        std::fflush(stdout);
        for (const cl_kernel kernel : kernels)
            clReleaseKernel(kernel);
        clReleaseProgram(program);
        clReleaseMemObject(image);
    }

private:
    cl_mem make_image(const Format& format) {
        cl_image_desc shape{};
        shape.image_type = CL_MEM_OBJECT_IMAGE2D;
        shape.image_width = shape.image_height = edge_;
        const cl_image_format elements{format.order, format.channel};
        cl_int error = CL_SUCCESS;
        const cl_mem made = clCreateImage(machine_.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &elements, &shape,
                                          bytes_.data(), &error);
        check(error, "clCreateImage");
        return made;
    }
    double launch(cl_kernel kernel) {
        const size_t global[] = {edge_, edge_}, local[] = {std::min<size_t>(edge_, 64), 4};
        const auto begin = Clock::now();
        check(clEnqueueNDRangeKernel(queue_, kernel, 2, nullptr, global, local, 0, nullptr, nullptr), "launch");
        check(clFinish(queue_), "clFinish");
        return microseconds_since(begin);
    }

    const OneDevice machine_;
    const size_t edge_;
    const double duration_us_;
    cl_command_queue queue_ = nullptr;
    cl_mem in_ = nullptr, out_ = nullptr;
    std::vector<unsigned char> bytes_;
};

}  // namespace

int main(int count, char** arguments) {
    const size_t edge = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1024;
    const double milliseconds = count > 2 ? std::strtod(arguments[2], nullptr) : 300;
    const std::string only = count > 3 ? arguments[3] : "";
    Images images(edge, milliseconds);
    std::puts("format   reads  way of reading           image    buffer  speed");
    for (const int radius : {0, 1})
        for (const Format& format : formats)
            for (const Way& way : ways)
                if (only.empty() || only == format.name)
                    images.measure(format, way, radius);
}
