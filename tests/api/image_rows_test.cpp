// Reads at coordinates that neighbouring work-items compute as a row, or almost as one: what the lanes of a row load at once must be what the same
// read returns at the same coordinates where each lane loads its element. image_sampling_test compares the latter with a reference.
#include "support/images.h"

#include <array>
#include <cmath>
#include <limits>

namespace polder::test {
namespace {

constexpr size_t width = 160, height = 5;
constexpr size_t row_items = 131;  // no multiple of the lanes. All, or only some, are within a row of the image
constexpr size_t rows = 3, items = row_items * rows;

struct Format {
    const char* name;
    cl_image_format format;
    size_t bytes;
    const char* read;  // its result is stored as four words
};
const Format formats[] = {
    {"float", {CL_RGBA, CL_FLOAT}, 16, "as_uint4(read_imagef"},
    {"unorm8", {CL_RGBA, CL_UNORM_INT8}, 4, "as_uint4(read_imagef"},
    {"uint8", {CL_RGBA, CL_UNSIGNED_INT8}, 4, "(read_imageui"},
    {"half", {CL_RGBA, CL_HALF_FLOAT}, 8, "as_uint4(read_imagef"},
    {"unorm16", {CL_RGBA, CL_UNORM_INT16}, 8, "as_uint4(read_imagef"},
    {"rg float", {CL_RG, CL_FLOAT}, 8, "as_uint4(read_imagef"},
    {"rg unorm8", {CL_RG, CL_UNORM_INT8}, 2, "as_uint4(read_imagef"},
    {"r float", {CL_R, CL_FLOAT}, 4, "as_uint4(read_imagef"},
    {"r unorm8", {CL_R, CL_UNORM_INT8}, 1, "as_uint4(read_imagef"},
};

const char* const samplers[] = {
    "CLK_ADDRESS_CLAMP",
    "CLK_ADDRESS_CLAMP_TO_EDGE",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_MIRRORED_REPEAT",
};

// Coordinates of work-item x: a sum, and a sum that is scaled, and one that is moved behind that. The factors are numbers of the launch.
const char* const coordinates[] = {
    "x + 0.5f",
    "(float)x",
    "x - 0.25f",
    "x + moved",
    "(x + 0.5f) * scale",
    "(x + 0.5f) / scale",
    "x / scale",
    "fma(x + 0.5f, scale, moved)",
    "(x + 0.5f) * scale + moved",
    "clamp((x + 0.5f) * scale, 0.0f, moved)",
    "-((x + 0.5f) * scale)",
};

std::string source_of(const Format& format, const std::string& sampler, const std::string& coordinate,
                      const char* filter) {
    return "constant sampler_t s = " + std::string(filter) + " | " + sampler + ";\n" +
           "kernel void row(read_only image2d_t in, global float2* at, global uint4* to, int shift, float scale, float "
           "moved, float row, float scale_of_rows) {\n"
           "    int x = (int)((uint)get_global_id(0) + (uint)shift), y = get_global_id(1);\n"
           "    int i = y * (int)get_global_size(0) + (int)get_global_id(0);\n"
           "    float2 c = (float2)(" +
           coordinate + ", (y + row) / scale_of_rows);\n    at[i] = c;\n    to[i] = " + format.read +
           "(in, s, c));\n}\n"
           "kernel void apart(read_only image2d_t in, global const float2* at, global uint4* to) {\n"
           "    int i = get_global_id(0);\n    to[i] = " +
           format.read + "(in, s, at[i]));\n}\n";
}

class ImageRows : public ImageTest {
protected:
    OwnedMem image_of(const Format& format) {
        std::vector<uint8_t> bytes(width * height * format.bytes);
        for (size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<uint8_t>(i * 37 + i / 251 * 3);
        const bool is_half = format.format.image_channel_data_type == CL_HALF_FLOAT;
        const size_t number_bytes = is_half ? 2 : 4;
        if (is_half || format.format.image_channel_data_type == CL_FLOAT)
            for (size_t i = number_bytes - 1; i < bytes.size(); i += number_bytes)
                bytes[i] &= 0x3f;  // neither infinite nor NaN
        const Triple extent{width, height, 1};
        OwnedMem image = make_image(format.format, describe(CL_MEM_OBJECT_IMAGE2D, extent), CL_MEM_READ_ONLY);
        write_image(image, {0, 0, 0}, extent, bytes.data());
        return image;
    }
    template <class... Arguments>
    void run(cl_kernel kernel, cl_uint dimensions, const std::array<size_t, 2>& size, const Arguments&... arguments) {
        set_arguments(kernel, arguments...);
        ASSERT_EQ(
            clEnqueueNDRangeKernel(queue, kernel, dimensions, nullptr, size.data(), size.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
    }

    void expect_rows(const Format& format, const std::string& sampler, const std::string& coordinate,
                     const char* filter) {
        SCOPED_TRACE(std::string(format.name) + ", " + sampler + ", " + coordinate);
        const OwnedProgram program = build(source_of(format, sampler, coordinate, filter));
        const OwnedKernel row = make_kernel(program, "row"), apart = make_kernel(program, "apart");
        const OwnedMem image = image_of(format);
        const OwnedMem at = make_buffer(items * sizeof(cl_float2));
        const OwnedMem to = make_buffer(items * sizeof(cl_uint4)), expected = make_buffer(items * sizeof(cl_uint4));
        const bool is_normalized = sampler.find("NORMALIZED") != std::string::npos;
        const auto size = static_cast<float>(width);
        constexpr float infinite = std::numeric_limits<float>::infinity(),
                        nan = std::numeric_limits<float>::quiet_NaN();
        const float scales[] = {1, size, 1 / size, 64, 1.0f / 64, 0.5f, 1.01f, -1, 0, 1e-40f, 1e38f, infinite, nan};
        const float moves[] = {0, 0.5f, 0.4375f, 0.999999f, 159.5f, -3, 1e6f, nan};
        const bool is_scaled = coordinate.find("scale") != std::string::npos;
        const bool is_moved = coordinate.find("moved") != std::string::npos;
        for (const float scale : scales)
            for (const float moved : moves)
                for (const int shift :
                     {0, -1, 3, 28, 29, 30, 32, 33, -140, 8190, -(1 << 13), 16300, (1 << 24) - 40, 2147483600}) {
                    if ((!is_scaled && scale != 1) || (!is_moved && moved != 0))
                        continue;
                    // Rows that are those of the work-items, and others.
                    const float middle = shift % 2 == 0 ? 0.5f : 1.5f;
                    run(row, 2, {row_items, rows}, static_cast<cl_mem>(image), static_cast<cl_mem>(at),
                        static_cast<cl_mem>(to), shift, scale, moved, middle,
                        is_normalized ? static_cast<float>(height) : 1.0f);
                    run(apart, 1, {items, 1}, static_cast<cl_mem>(image), static_cast<cl_mem>(at),
                        static_cast<cl_mem>(expected));
                    ASSERT_EQ((read<std::array<uint32_t, 4>>(to, items)),
                              (read<std::array<uint32_t, 4>>(expected, items)))
                        << "scale " << scale << ", moved by " << moved << ", shift " << shift;
                }
    }
};

TEST_F(ImageRows, RowsAreWhatEachLaneReads) {
    for (const char* sampler : samplers)
        for (const char* coordinate : coordinates)
            ASSERT_NO_FATAL_FAILURE(expect_rows(formats[0], sampler, coordinate, "CLK_FILTER_NEAREST"));
}

TEST_F(ImageRows, OfEveryFormat) {
    for (const Format& format : formats)
        for (const char* sampler : samplers)
            ASSERT_NO_FATAL_FAILURE(expect_rows(format, sampler, "(x + 0.5f) / scale", "CLK_FILTER_NEAREST"));
}

TEST_F(ImageRows, WithLinearFilters) {
    for (const char* sampler : samplers)
        for (const char* coordinate : {"x + 0.5f", "x + 0.25f", "(x + 0.5f) / scale"})
            ASSERT_NO_FATAL_FAILURE(expect_rows(formats[0], sampler, coordinate, "CLK_FILTER_LINEAR"));
}

}  // namespace
}  // namespace polder::test
