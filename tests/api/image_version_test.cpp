// Code that is made for the formats of a launch's images, and runs in lanes, does what code for any image does, to the bit: all formats,
// all samplers, all types of images, coordinates in rows and at random, on edges, outside, and none that are numbers. The code for any
// image is that of a program built with -cl-opt-disable.
#include "support/images.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace polder::test {
namespace {

constexpr cl_int2 items{{41, 7}};
constexpr size_t item_count = 41 * 7;
constexpr size_t results_per_item = 3;
using Color = std::array<uint32_t, 4>;

struct Kind {
    ImageType type;
    const char* cl_type;
    const char* swizzle;  // of coordinates
};
// Powers of two, so that normalized coordinates are exact.
const Kind kinds[] = {
    {{CL_MEM_OBJECT_IMAGE2D, {16, 8, 1}, "2D"}, "image2d_t", ".xy"},
    {{CL_MEM_OBJECT_IMAGE1D, {16, 1, 1}, "1D"}, "image1d_t", ".x"},
    {{CL_MEM_OBJECT_IMAGE1D_ARRAY, {16, 4, 1}, "1D array"}, "image1d_array_t", ".xy"},
    {{CL_MEM_OBJECT_IMAGE2D_ARRAY, {16, 8, 4}, "2D array"}, "image2d_array_t", ""},
    {{CL_MEM_OBJECT_IMAGE3D, {16, 8, 4}, "3D"}, "image3d_t", ""},
};

const char* const samplers[] = {
    "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR",
    "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST",
    "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST",
    "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR",
    "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_MIRRORED_REPEAT | CLK_FILTER_NEAREST",
    "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_MIRRORED_REPEAT | CLK_FILTER_LINEAR",
};

bool contains(const char* text, const char* part) { return std::strstr(text, part) != nullptr; }
bool is_linear(const char* sampler) { return contains(sampler, "LINEAR"); }
bool is_normalized(const char* sampler) { return contains(sampler, "COORDS_TRUE"); }

bool is_whole(const cl_image_format& format) {
    return format.image_channel_data_type >= CL_SIGNED_INT8 && format.image_channel_data_type <= CL_UNSIGNED_INT32;
}
const char* letter_of(const cl_image_format& format) {
    if (!is_whole(format))
        return "f";
    return format.image_channel_data_type >= CL_UNSIGNED_INT8 ? "ui" : "i";
}
std::string name_of(const cl_image_format& format) {
    return "format " + std::to_string(format.image_channel_order) + " " +
           std::to_string(format.image_channel_data_type);
}

// Three reads of each work-item, some of which are behind a guard: along a row that begins and ends outside of the image, at a given
// place, and at an integer one.
std::string reading(const Kind& kind, const char* sampler, const char* letter) {
    const std::string swizzle = kind.swizzle;
    const bool has_whole_reads = !is_linear(sampler) && !is_normalized(sampler);
    const std::string read = std::string("as_uint4(read_image") + letter + "(image, ";
    return std::string("constant sampler_t s = ") + sampler + ";\nkernel void k(read_only " + kind.cl_type +
           " image, global const float4* at, global uint4* to, int2 size, float4 first, float4 step) {\n"
           "  const int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
           "  if (p.x >= size.x || p.y >= size.y) return;\n"
           "  const int i = p.y * size.x + p.x;\n"
           "  const float4 row = convert_float4(p.xyyy) * step + first;\n"
           "  const int4 whole = p.xyyx - (int4)(14, 1, 2, 0);\n" +
           "  to[3 * i] = " + read + "s, row" + swizzle + "));\n" + "  to[3 * i + 1] = " + read + "s, at[i]" + swizzle +
           "));\n" + "  to[3 * i + 2] = " + read + (has_whole_reads ? "s, " : "") + "whole" + swizzle + "));\n}\n";
}

constexpr const char* writing = R"(
    #define PLACE const int2 p = (int2)(get_global_id(0), get_global_id(1)); if (p.x >= size.x || p.y >= size.y) return; \
        const int i = p.y * size.x + p.x; const int2 to = p - (int2)(14, 1);
    kernel void f(write_only image2d_t image, global const uint4* from, int2 size) { PLACE write_imagef(image, to, as_float4(from[i])); }
    kernel void i(write_only image2d_t image, global const uint4* from, int2 size) { PLACE write_imagei(image, to, as_int4(from[i])); }
    kernel void ui(write_only image2d_t image, global const uint4* from, int2 size) { PLACE write_imageui(image, to, from[i]); }
)";

class ImageVersion : public ImageTest {
protected:
    std::vector<cl_image_format> formats(cl_mem_flags flags) {
        cl_uint count = 0;
        EXPECT_EQ(clGetSupportedImageFormats(context, flags, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count), CL_SUCCESS);
        std::vector<cl_image_format> list(count);
        EXPECT_EQ(clGetSupportedImageFormats(context, flags, CL_MEM_OBJECT_IMAGE2D, count, list.data(), nullptr),
                  CL_SUCCESS);
        std::erase_if(list, [](const cl_image_format& format) { return format.image_channel_order == CL_DEPTH; });
        return list;
    }
    template <class... Arguments>
    void run(cl_kernel kernel, const Arguments&... arguments) {
        set_arguments(kernel, arguments...);
        const size_t global[] = {53, 8};
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    }
    template <class T>
    OwnedMem upload(const std::vector<T>& values) {
        OwnedMem buffer = make_buffer(values.size() * sizeof(T));
        write(buffer, values);
        return buffer;
    }
    OwnedMem random_image(const Kind& kind, const cl_image_format& format) {
        OwnedMem image = make_image(kind.type, format);
        const size_t bytes = kind.type.extent[0] * kind.type.extent[1] * kind.type.extent[2] *
                             image_info<size_t>(image, CL_IMAGE_ELEMENT_SIZE);
        std::vector<uint8_t> elements = random_bytes(bytes);
        // Floats that are numbers.
        if (format.image_channel_data_type == CL_FLOAT || format.image_channel_data_type == CL_HALF_FLOAT)
            for (size_t at = format.image_channel_data_type == CL_FLOAT ? 3 : 1; at < bytes;
                 at += format.image_channel_data_type == CL_FLOAT ? 4 : 2)
                elements[at] &= 0xbf;
        write_image(image, {0, 0, 0}, kind.type.extent, elements.data());
        return image;
    }
    std::vector<cl_float4> random_places(bool normalized) {
        const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e9f, -1e9f, -0.0f, 0.5f, 16.0f, 8.0f};
        std::vector<cl_float4> places(item_count);
        for (cl_float4& place : places)
            for (float& coordinate : place.s) {
                const float inside = std::floor(std::uniform_real_distribution<float>(-128, 256)(random_)) / 8;
                coordinate = random_() % 16 == 0 ? odd[random_() % std::size(odd)] : normalized ? inside / 16 : inside;
            }
        return places;
    }
    std::vector<Color> read_all(cl_kernel kernel, cl_mem image, const std::vector<cl_float4>& places, bool normalized) {
        const OwnedMem at = upload(places);
        const std::vector<Color> none(results_per_item * item_count, Color{1, 2, 3, 4});
        const OwnedMem to = upload(none);
        const float unit = normalized ? 1.0f / 16 : 1.0f;
        const cl_float4 first{{-13.75f * unit, -1.75f * unit, 0.25f * unit, 0}}, step{{unit, unit, unit, 0}};
        run(kernel, image, static_cast<cl_mem>(at), static_cast<cl_mem>(to), items, first, step);
        return read<Color>(to, none.size());
    }
    // The same bits, or both not numbers where colors are floats.
    static void expect_same(const std::vector<Color>& found, const std::vector<Color>& expected, bool are_floats) {
        for (size_t i = 0; i < expected.size(); ++i)
            for (size_t c = 0; c < 4; ++c) {
                const auto is_nan = [](uint32_t bits) { return std::isnan(std::bit_cast<float>(bits)); };
                if (are_floats && is_nan(found[i][c]) && is_nan(expected[i][c]))
                    continue;
                ASSERT_EQ(found[i][c], expected[i][c])
                    << "component " << c << " of read " << i % results_per_item << " of item " << i / results_per_item;
            }
    }
    // A program of its own for each format: the first launch of a kernel makes code for it.
    void compare(const Kind& kind, const char* sampler, const std::vector<cl_image_format>& list) {
        for (const char* letter : {"f", "i", "ui"}) {
            const std::string source = reading(kind, sampler, letter);
            OwnedProgram general;
            for (const cl_image_format& format : list) {
                if (letter_of(format) != std::string(letter) || (is_whole(format) && is_linear(sampler)))
                    continue;
                SCOPED_TRACE(std::string(kind.type.name) + ", " + name_of(format) + ", " + sampler);
                if (!general)
                    general = build(source, "-cl-opt-disable");
                const OwnedProgram known = build(source);
                const OwnedMem image = random_image(kind, format);
                const auto places = random_places(is_normalized(sampler));
                const auto found = read_all(make_kernel(known, "k"), image, places, is_normalized(sampler));
                const auto expected = read_all(make_kernel(general, "k"), image, places, is_normalized(sampler));
                ASSERT_NO_FATAL_FAILURE(expect_same(found, expected, !is_whole(format)));
            }
        }
    }
    std::mt19937 random_{7};
};

const std::vector<cl_image_format> few_formats{
    {CL_RGBA, CL_FLOAT},      {CL_RGBA, CL_UNORM_INT8},    {CL_R, CL_HALF_FLOAT},  {CL_R, CL_FLOAT},
    {CL_BGRA, CL_UNORM_INT8}, {CL_RGBA, CL_UNSIGNED_INT8}, {CL_RG, CL_SNORM_INT16}};

TEST_F(ImageVersion, EveryFormatIsReadAsByCodeForAnyImage) {
    for (const char* sampler : {samplers[0], samplers[1]})
        ASSERT_NO_FATAL_FAILURE(compare(kinds[0], sampler, formats(CL_MEM_READ_ONLY)));
}

TEST_F(ImageVersion, EverySamplerChoosesTheSameElements) {
    for (const char* sampler : samplers)
        ASSERT_NO_FATAL_FAILURE(compare(kinds[0], sampler, few_formats));
}

TEST_F(ImageVersion, EveryTypeOfImageIsReadTheSame) {
    for (const Kind& kind : kinds)
        for (const char* sampler : {samplers[0], samplers[1], samplers[5]})
            ASSERT_NO_FATAL_FAILURE(compare(kind, sampler, {few_formats[0], few_formats[1], few_formats[5]}));
}

TEST_F(ImageVersion, EveryFormatIsWrittenAsByCodeForAnyImage) {
    const OwnedProgram general = build(writing, "-cl-opt-disable");
    const Kind& kind = kinds[0];
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -1, 0.5f / 255, 1.5f / 255, 2, -0.0f, 65504, 65520, 1e-8f};
    for (const cl_image_format& format : formats(CL_MEM_WRITE_ONLY)) {
        SCOPED_TRACE(name_of(format));
        const OwnedProgram known = build(writing);
        std::vector<Color> colors(item_count);
        for (Color& color : colors)
            for (uint32_t& component : color) {
                const float real = std::uniform_real_distribution<float>(-1.5f, 1.5f)(random_);
                component = is_whole(format)
                                ? static_cast<uint32_t>(random_()) >> random_() % 32
                                : std::bit_cast<uint32_t>(random_() % 8 ? real : odd[random_() % std::size(odd)]);
            }
        const OwnedMem from = upload(colors);
        const OwnedMem found = random_image(kind, format), expected = make_image(kind.type, format);
        const auto before = read_image(found, {0, 0, 0}, kind.type.extent);
        write_image(expected, {0, 0, 0}, kind.type.extent, before.data());
        run(make_kernel(known, letter_of(format)), static_cast<cl_mem>(found), static_cast<cl_mem>(from), items);
        run(make_kernel(general, letter_of(format)), static_cast<cl_mem>(expected), static_cast<cl_mem>(from), items);
        ASSERT_EQ(read_image(found, {0, 0, 0}, kind.type.extent), read_image(expected, {0, 0, 0}, kind.type.extent));
    }
}

// One kernel for all formats of numbers, whose colors go to a buffer: lanes take its code for any image apart into components.
TEST_F(ImageVersion, OneKernelReadsEveryFormat) {
    const char* const source = R"(
        kernel void k(read_only image2d_t image, sampler_t s, global float4* to) {
            const int2 p = (int2)(get_global_id(0), get_global_id(1));
            to[p.y * get_global_size(0) + p.x] = read_imagef(image, s, p);
        })";
    const OwnedProgram program = build(source), other = build(source, "-cl-opt-disable");
    const OwnedKernel kernel = make_kernel(program, "k"), general = make_kernel(other, "k");
    cl_int error = CL_SUCCESS;
    const OwnedSampler nearest = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &error);
    for (const cl_image_format& format : formats(CL_MEM_READ_ONLY)) {
        if (is_whole(format))
            continue;
        SCOPED_TRACE(name_of(format));
        const OwnedMem image = random_image(kinds[0], format);
        const auto colors = [&](cl_kernel of) {
            const OwnedMem to = make_buffer(53 * 8 * sizeof(cl_float4));
            run(of, static_cast<cl_mem>(image), static_cast<cl_sampler>(nearest), static_cast<cl_mem>(to));
            return read<Color>(to, 53 * 8);
        };
        ASSERT_NO_FATAL_FAILURE(expect_same(colors(kernel), colors(general), true));
    }
}

// One kernel, two images of other formats at each launch: more than it has versions for.
TEST_F(ImageVersion, ImagesMayDifferFromLaunchToLaunch) {
    const char* const source = R"(
        kernel void copy(read_only image2d_t from, write_only image2d_t to, sampler_t s) {
            const int2 p = (int2)(get_global_id(0), get_global_id(1));
            write_imagef(to, p, read_imagef(from, s, convert_float2(p) - (float2)(2.25f, 1.5f)));
        })";
    const OwnedProgram program = build(source), other = build(source, "-cl-opt-disable");
    const OwnedKernel kernel = make_kernel(program, "copy"), general = make_kernel(other, "copy");
    cl_int error = CL_SUCCESS;
    const OwnedSampler nearest = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &error);
    const OwnedSampler linear = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_LINEAR, &error);
    for (int i = 0; i < 300; ++i) {
        const auto chosen = [&] { return few_formats[random_() % (i < 40 ? 2 : few_formats.size())]; };
        const cl_image_format from_format = is_whole(chosen()) ? few_formats[0] : chosen();
        const cl_image_format first = chosen(), to_format = is_whole(first) ? few_formats[1] : first;
        if (is_whole(from_format))
            continue;
        SCOPED_TRACE(name_of(from_format) + " to " + name_of(to_format) + " in round " + std::to_string(i));
        const OwnedMem from = random_image(kinds[0], from_format);
        const OwnedMem to = make_image(kinds[0].type, to_format), expected = make_image(kinds[0].type, to_format);
        const cl_sampler sampler = random_() % 2 ? nearest : linear;
        run(kernel, static_cast<cl_mem>(from), static_cast<cl_mem>(to), sampler);
        run(general, static_cast<cl_mem>(from), static_cast<cl_mem>(expected), sampler);
        ASSERT_EQ(read_image(to, {0, 0, 0}, {16, 8, 1}), read_image(expected, {0, 0, 0}, {16, 8, 1}));
    }
}

TEST_F(ImageVersion, ReadWriteImagesSeeWhatTheWorkItemWrote) {
    const OwnedProgram program = build(R"(
        kernel void k(read_write image2d_t image) {
            const int2 p = (int2)(get_global_id(0), get_global_id(1));
            const float4 color = read_imagef(image, p);
            write_imagef(image, p, 2 * color);
            atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);
            write_imagef(image, p, read_imagef(image, p) + 1);
        })",
                                       "-cl-std=CL3.0");
    for (const cl_channel_order order : {CL_RGBA, CL_R}) {
        const OwnedMem image = make_image({order, CL_FLOAT}, describe(CL_MEM_OBJECT_IMAGE2D, {16, 8, 1}));
        std::vector<float> values(size_t{16} * 8 * (order == CL_R ? 1 : 4));
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i);
        write_image(image, {0, 0, 0}, {16, 8, 1}, values.data());
        run(make_kernel(program, "k"), static_cast<cl_mem>(image));
        for (float& value : values)
            value = 2 * value + 1;
        EXPECT_EQ(read_image<float>(image, {0, 0, 0}, {16, 8, 1}), values);
    }
}

}  // namespace
}  // namespace polder::test
