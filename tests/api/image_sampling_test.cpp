// read_image* and write_image* against a reference (support/image_reference.h): random coordinates, all types of images, all
// samplers, all formats.
#include "support/image_reference.h"

namespace polder::test {
namespace {

// More than a work-group's lanes, and no multiple of them.
constexpr size_t points = 501;

struct Kind {
    ImageType type;
    size_t dims;
    bool is_array;
    const char* cl_type;
    const char* coordinate;  // the width of coordinates in the kernel
};
const Kind kinds[] = {
    {image_types[0], 1, false, "image1d_t", ""},  {image_types[1], 1, true, "image1d_array_t", "2"},
    {image_types[2], 2, false, "image2d_t", "2"}, {image_types[3], 2, true, "image2d_array_t", "4"},
    {image_types[4], 3, false, "image3d_t", "4"},
};

std::string name_of(const cl_image_format& format) {
    return "format " + std::to_string(format.image_channel_order) + " " +
           std::to_string(format.image_channel_data_type);
}

bool is_whole(const cl_image_format& format) {
    return format.image_channel_data_type >= CL_SIGNED_INT8 && format.image_channel_data_type <= CL_UNSIGNED_INT32;
}
bool is_unsigned(const cl_image_format& format) {
    return format.image_channel_data_type >= CL_UNSIGNED_INT8 && format.image_channel_data_type <= CL_UNSIGNED_INT32;
}

class Sampling : public ImageTest {
protected:
    // Elements of any format; floats are finite and not large.
    ReferenceImage make_reference(const Kind& kind, const cl_image_format& format) {
        ReferenceImage made{format, kind.type.extent, kind.dims, kind.is_array, {}};
        made.bytes = random_bytes(made.extent[0] * made.extent[1] * made.extent[2] * made.element_bytes());
        std::uniform_real_distribution<float> real(-4, 4);
        if (format.image_channel_data_type == CL_FLOAT)
            for (size_t at = 0; at < made.bytes.size(); at += 4) {
                const float value = real(random_);
                std::memcpy(made.bytes.data() + at, &value, sizeof value);
            }
        if (format.image_channel_data_type == CL_HALF_FLOAT)
            for (size_t at = 1; at < made.bytes.size(); at += 2)
                made.bytes[at] &= 0xbf;
        return made;
    }
    OwnedMem upload(const Kind& kind, const ReferenceImage& reference) {
        OwnedMem image = make_image(reference.format, describe(kind.type.type, kind.type.extent), CL_MEM_READ_ONLY);
        write_image(image, {0, 0, 0}, kind.type.extent, reference.bytes.data());
        return image;
    }

    std::vector<std::array<float, 4>> float_coordinates(const Kind& kind, bool is_normalized) {
        std::vector<std::array<float, 4>> list(points);
        for (auto& at : list)
            for (size_t i = 0; i < 4; ++i) {
                const auto size = static_cast<float>(i < 3 ? kind.type.extent[i] : 1);
                const bool is_layer = kind.is_array && i == kind.dims;
                // Three images around, and places on the edges between elements.
                const float place = std::uniform_real_distribution<float>(-1.5f * size, 2.5f * size)(random_);
                const float chosen = random_() % 4 == 0 ? std::floor(place) + (random_() % 2 ? 0.5f : 0.0f) : place;
                at[i] = is_normalized && !is_layer ? chosen / size : chosen;
            }
        return list;
    }
    std::vector<std::array<int, 4>> whole_coordinates(const Kind& kind) {
        std::vector<std::array<int, 4>> list(points);
        for (auto& at : list)
            for (size_t i = 0; i < 4; ++i) {
                const int size = static_cast<int>(i < 3 ? kind.type.extent[i] : 1);
                at[i] = std::uniform_int_distribution<int>(-3, size + 2)(random_);
            }
        at_ends(list);
        return list;
    }
    static void at_ends(std::vector<std::array<int, 4>>& list) {
        list[0] = {INT32_MIN, INT32_MIN, INT32_MIN, 0};
        list[1] = {INT32_MAX, INT32_MAX, INT32_MAX, 0};
    }

    template <class T>
    OwnedMem upload_buffer(const std::vector<T>& values) {
        OwnedMem buffer = make_buffer(values.size() * sizeof(T));
        write(buffer, values);
        return buffer;
    }
    template <class... Arguments>
    void run(cl_kernel kernel, const Arguments&... arguments) {
        set_arguments(kernel, arguments...);
        const size_t count = points;
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    }
    OwnedSampler make_sampler(const ReferenceSampler& sampler) {
        cl_int error = CL_INVALID_VALUE;
        const cl_sampler made = clCreateSampler(context, sampler.normalized, sampler.address, sampler.filter, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }

    static void expect_near(const std::array<float, 4>& found, const Color& expected, double tolerance, size_t point) {
        for (size_t c = 0; c < 4; ++c)
            ASSERT_NEAR(static_cast<double>(found[c]), expected[c], tolerance) << "component " << c << " of " << point;
    }
};

std::string source_of(const Kind& kind, const std::string& sampler, const char* function, const char* result) {
    const std::string width = kind.coordinate;
    const std::string swizzle = width.empty() ? ".x" : width == "2" ? ".xy" : "";
    const bool is_argument = sampler.empty();
    return (is_argument ? "" : "constant sampler_t sampler = " + sampler + ";\n") +
           "#define AT(T) at[get_global_id(0)]" + swizzle + "\n" + "kernel void at_float(read_only " + kind.cl_type +
           " image, " + (is_argument ? "sampler_t sampler, " : "") + "global const float4* at, global " + result +
           "* to) { to[get_global_id(0)] = " + function + "(image, sampler, AT(float)); }\n" +
           "kernel void at_int(read_only " + kind.cl_type + " image, " + (is_argument ? "sampler_t sampler, " : "") +
           "global const int4* at, global " + result + "* to) { to[get_global_id(0)] = " + function +
           "(image, sampler, AT(int)); }\n" + "kernel void plain(read_only " + kind.cl_type +
           " image, global const int4* at, global " + result + "* to) { to[get_global_id(0)] = " + function +
           "(image, AT(int)); }\n";
}

const ReferenceSampler samplers[] = {
    {CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST},           {CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_LINEAR},
    {CL_TRUE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST},   {CL_TRUE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_LINEAR},
    {CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_NEAREST},          {CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_LINEAR},
    {CL_TRUE, CL_ADDRESS_MIRRORED_REPEAT, CL_FILTER_NEAREST}, {CL_TRUE, CL_ADDRESS_MIRRORED_REPEAT, CL_FILTER_LINEAR},
    {CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST},          {CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_LINEAR},
    {CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST},  {CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_LINEAR},
};

std::string text_of(const ReferenceSampler& sampler) {
    std::string text = sampler.normalized ? "CLK_NORMALIZED_COORDS_TRUE" : "CLK_NORMALIZED_COORDS_FALSE";
    text += sampler.filter == CL_FILTER_LINEAR ? " | CLK_FILTER_LINEAR" : " | CLK_FILTER_NEAREST";
    switch (sampler.address) {
    case CL_ADDRESS_CLAMP: return text + " | CLK_ADDRESS_CLAMP";
    case CL_ADDRESS_CLAMP_TO_EDGE: return text + " | CLK_ADDRESS_CLAMP_TO_EDGE";
    case CL_ADDRESS_REPEAT: return text + " | CLK_ADDRESS_REPEAT";
    default: return text + " | CLK_ADDRESS_MIRRORED_REPEAT";
    }
}

// Nearest elements are exact but for the conversion of normalized values; weighted means of values up to 4 differ by the
// rounding of a few operations.
double tolerance_of(const ReferenceSampler& sampler) { return sampler.filter == CL_FILTER_LINEAR ? 1e-5 : 3e-7; }

TEST_F(Sampling, EverySamplerChoosesTheElementsOfTheSpecification) {
    for (const Kind& kind : kinds) {
        const OwnedProgram program = build(source_of(kind, "", "read_imagef", "float4"));
        const OwnedKernel kernel = make_kernel(program, "at_float");
        for (const cl_image_format& format :
             {cl_image_format{CL_RGBA, CL_FLOAT}, cl_image_format{CL_RGBA, CL_UNORM_INT8},
              cl_image_format{CL_R, CL_FLOAT}, cl_image_format{CL_R, CL_UNORM_INT8},
              cl_image_format{CL_RG, CL_SNORM_INT16}}) {
            const ReferenceImage reference = make_reference(kind, format);
            const OwnedMem image = upload(kind, reference);
            for (const ReferenceSampler& sampler : samplers) {
                SCOPED_TRACE(std::string(kind.type.name) + ", " + name_of(format) + ", " + text_of(sampler));
                const auto at = float_coordinates(kind, sampler.normalized);
                const OwnedMem at_buffer = upload_buffer(at);
                const OwnedMem to = make_buffer(points * sizeof(cl_float4));
                const OwnedSampler made = make_sampler(sampler);
                run(kernel, static_cast<cl_mem>(image), static_cast<cl_sampler>(made), static_cast<cl_mem>(at_buffer),
                    static_cast<cl_mem>(to));
                const auto found = read<std::array<float, 4>>(to, points);
                const ReferenceSampling expected(reference, sampler);
                for (size_t i = 0; i < points; ++i)
                    ASSERT_NO_FATAL_FAILURE(expect_near(found[i], expected.at(at[i]), tolerance_of(sampler), i));
            }
        }
    }
}

TEST_F(Sampling, SamplersInTheSourceAreTheSame) {
    const Kind& kind = kinds[2];
    const ReferenceImage reference = make_reference(kind, {CL_RGBA, CL_UNORM_INT8});
    const OwnedMem image = upload(kind, reference);
    for (const ReferenceSampler& sampler : samplers) {
        SCOPED_TRACE(text_of(sampler));
        const OwnedProgram program = build(source_of(kind, text_of(sampler), "read_imagef", "float4"));
        const OwnedKernel kernel = make_kernel(program, "at_float");
        const auto at = float_coordinates(kind, sampler.normalized);
        const OwnedMem at_buffer = upload_buffer(at);
        const OwnedMem to = make_buffer(points * sizeof(cl_float4));
        run(kernel, static_cast<cl_mem>(image), static_cast<cl_mem>(at_buffer), static_cast<cl_mem>(to));
        const auto found = read<std::array<float, 4>>(to, points);
        const ReferenceSampling expected(reference, sampler);
        for (size_t i = 0; i < points; ++i)
            ASSERT_NO_FATAL_FAILURE(expect_near(found[i], expected.at(at[i]), tolerance_of(sampler), i));
    }
}

TEST_F(Sampling, IntegerCoordinatesAreExact) {
    for (const Kind& kind : kinds) {
        const OwnedProgram program = build(source_of(kind, "", "read_imagef", "float4"));
        const OwnedKernel kernel = make_kernel(program, "at_int");
        const OwnedKernel plain = make_kernel(program, "plain");
        const ReferenceImage reference = make_reference(kind, {CL_RGBA, CL_FLOAT});
        const OwnedMem image = upload(kind, reference);
        for (const cl_addressing_mode address : {CL_ADDRESS_CLAMP, CL_ADDRESS_CLAMP_TO_EDGE}) {
            SCOPED_TRACE(std::string(kind.type.name) + " " + std::to_string(address));
            const ReferenceSampler sampler{CL_FALSE, address, CL_FILTER_NEAREST};
            const auto at = whole_coordinates(kind);
            const OwnedMem at_buffer = upload_buffer(at);
            const OwnedMem to = make_buffer(points * sizeof(cl_float4));
            const OwnedSampler made = make_sampler(sampler);
            run(kernel, static_cast<cl_mem>(image), static_cast<cl_sampler>(made), static_cast<cl_mem>(at_buffer),
                static_cast<cl_mem>(to));
            auto found = read<std::array<float, 4>>(to, points);
            const ReferenceSampling expected(reference, sampler);
            for (size_t i = 0; i < points; ++i)
                ASSERT_NO_FATAL_FAILURE(expect_near(found[i], expected.at_whole(at[i]), 0, i));
            // Without a sampler, reads outside of the image may return anything, but must not crash.
            run(plain, static_cast<cl_mem>(image), static_cast<cl_mem>(at_buffer), static_cast<cl_mem>(to));
            found = read<std::array<float, 4>>(to, points);
            for (size_t i = 0; i < points; ++i) {
                std::array<int, 3> place{};
                for (size_t d = 0; d < kind.dims + kind.is_array; ++d)
                    place[d] = at[i][d];
                if (reference.is_inside(place)) {
                    ASSERT_NO_FATAL_FAILURE(expect_near(found[i], reference.color(place), 0, i));
                }
            }
        }
    }
}

TEST_F(Sampling, CoordinatesThatAreNoNumbersReadSomeElement) {
    const Kind& kind = kinds[4];
    const OwnedProgram program = build(source_of(kind, "", "read_imagef", "float4"));
    const OwnedKernel kernel = make_kernel(program, "at_float");
    const OwnedMem image = upload(kind, make_reference(kind, {CL_RGBA, CL_FLOAT}));
    std::vector<std::array<float, 4>> at(points);
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e9f, -1e9f, -0.0f};
    for (auto& each : at)
        for (float& value : each)
            value = odd[random_() % std::size(odd)];
    const OwnedMem at_buffer = upload_buffer(at);
    const OwnedMem to = make_buffer(points * sizeof(cl_float4));
    for (const ReferenceSampler& sampler : samplers) {
        const OwnedSampler made = make_sampler(sampler);
        run(kernel, static_cast<cl_mem>(image), static_cast<cl_sampler>(made), static_cast<cl_mem>(at_buffer),
            static_cast<cl_mem>(to));
        EXPECT_EQ(clFinish(queue), CL_SUCCESS);
    }
}

TEST_F(Sampling, EveryFormatIsRead) {
    const Kind& kind = kinds[2];
    cl_uint count = 0;
    ASSERT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_ONLY, kind.type.type, 0, nullptr, &count), CL_SUCCESS);
    std::vector<cl_image_format> formats(count);
    ASSERT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_ONLY, kind.type.type, count, formats.data(), nullptr),
              CL_SUCCESS);
    const OwnedProgram real = build(source_of(kind, "", "read_imagef", "float4"));
    const OwnedProgram whole = build(source_of(kind, "", "read_imagei", "int4"));
    const OwnedProgram natural = build(source_of(kind, "", "read_imageui", "uint4"));
    for (const cl_image_format& format : formats) {
        SCOPED_TRACE(name_of(format));
        if (format.image_channel_order == CL_DEPTH)
            continue;
        const ReferenceImage reference = make_reference(kind, format);
        const OwnedMem image = upload(kind, reference);
        for (const cl_filter_mode filter : {CL_FILTER_NEAREST, CL_FILTER_LINEAR}) {
            if (is_whole(format) && filter == CL_FILTER_LINEAR)
                continue;
            const ReferenceSampler sampler{CL_TRUE, CL_ADDRESS_CLAMP, filter};
            const auto at = float_coordinates(kind, true);
            const OwnedMem at_buffer = upload_buffer(at);
            const OwnedMem to = make_buffer(points * sizeof(cl_float4));
            const OwnedSampler made = make_sampler(sampler);
            const OwnedKernel kernel =
                make_kernel(is_whole(format) ? (is_unsigned(format) ? natural : whole) : real, "at_float");
            run(kernel, static_cast<cl_mem>(image), static_cast<cl_sampler>(made), static_cast<cl_mem>(at_buffer),
                static_cast<cl_mem>(to));
            const ReferenceSampling expected(reference, sampler);
            const auto bits = read<std::array<uint32_t, 4>>(to, points);
            for (size_t i = 0; i < points; ++i)
                for (size_t c = 0; c < 4; ++c) {
                    const double found = !is_whole(format)     ? static_cast<double>(std::bit_cast<float>(bits[i][c]))
                                         : is_unsigned(format) ? static_cast<double>(bits[i][c])
                                                               : static_cast<double>(static_cast<int32_t>(bits[i][c]));
                    ASSERT_NEAR(found, expected.at(at[i])[c], is_whole(format) ? 0 : tolerance_of(sampler))
                        << "component " << c << " of " << i;
                }
        }
    }
}

// What is written is what reading gives back, up to the format's precision.
TEST_F(Sampling, EveryFormatIsWritten) {
    const Kind& kind = kinds[2];
    cl_uint count = 0;
    ASSERT_EQ(clGetSupportedImageFormats(context, CL_MEM_WRITE_ONLY, kind.type.type, 0, nullptr, &count), CL_SUCCESS);
    std::vector<cl_image_format> formats(count);
    ASSERT_EQ(clGetSupportedImageFormats(context, CL_MEM_WRITE_ONLY, kind.type.type, count, formats.data(), nullptr),
              CL_SUCCESS);
    const OwnedProgram program = build(R"(
        #define AT ((int2)(get_global_id(0) % 13, get_global_id(0) / 13))
        kernel void real(write_only image2d_t to, global const float4* from) { write_imagef(to, AT, from[get_global_id(0)]); }
        kernel void whole(write_only image2d_t to, global const int4* from) { write_imagei(to, AT, from[get_global_id(0)]); }
        kernel void natural(write_only image2d_t to, global const uint4* from) { write_imageui(to, AT, from[get_global_id(0)]); }
    )");
    for (const cl_image_format& format : formats) {
        SCOPED_TRACE(name_of(format));
        if (format.image_channel_order == CL_DEPTH)
            continue;
        // Colors that the format has: those that the reference reads from random elements.
        const ReferenceImage reference = make_reference(kind, format);
        std::vector<std::array<uint32_t, 4>> colors(points);
        for (size_t i = 0; i < 65; ++i)
            for (size_t c = 0; c < 4; ++c) {
                const double value = reference.color({static_cast<int>(i % 13), static_cast<int>(i / 13), 0})[c];
                colors[i][c] = !is_whole(format)     ? std::bit_cast<uint32_t>(static_cast<float>(value))
                               : is_unsigned(format) ? static_cast<uint32_t>(value)
                                                     : static_cast<uint32_t>(static_cast<int32_t>(value));
            }
        const OwnedMem image = make_image(format, describe(kind.type.type, kind.type.extent));
        const OwnedMem from = upload_buffer(colors);
        run(make_kernel(program, is_whole(format) ? (is_unsigned(format) ? "natural" : "whole") : "real"),
            static_cast<cl_mem>(image), static_cast<cl_mem>(from));
        ReferenceImage written = reference;
        written.bytes = read_image(image, {0, 0, 0}, kind.type.extent);
        for (int i = 0; i < 65; ++i)
            for (size_t c = 0; c < 4; ++c)
                ASSERT_EQ(written.color({i % 13, i / 13, 0})[c], reference.color({i % 13, i / 13, 0})[c])
                    << "component " << c << " of " << i;
    }
}

TEST_F(Sampling, ValuesOutOfRangeAreSaturatedWhenTheyAreWritten) {
    const OwnedProgram program = build(R"(
        kernel void write(write_only image2d_t real, write_only image2d_t natural) {
            const int x = get_global_id(0);
            const float4 colors[4] = {(float4)(2, -1, NAN, 0.5f), (float4)(INFINITY, -INFINITY, 1e9f, 0.25f),
                                      (float4)(1.0f / 255, 0.4f / 255, 0.6f / 255, 254.5f / 255), (float4)(0)};
            write_imagef(real, (int2)(x, 0), colors[x]);
            write_imageui(natural, (int2)(x, 0), (uint4)(255 + x, 256, 0xffffffff, x));
        })");
    const OwnedKernel kernel = make_kernel(program, "write");
    const size_t four = 4;
    for (const cl_channel_order order : {CL_RGBA, CL_BGRA}) {  // inline, and by the function for any format
        const OwnedMem real = make_image({order, CL_UNORM_INT8}, describe(CL_MEM_OBJECT_IMAGE2D, {4, 1, 1}));
        const OwnedMem natural = make_image({order, CL_UNSIGNED_INT8}, describe(CL_MEM_OBJECT_IMAGE2D, {4, 1, 1}));
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), real.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), natural.in()), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &four, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        std::vector<uint8_t> expected{255, 0, 0, 128, 255, 0, 255, 64, 1, 0, 1, 254, 0, 0, 0, 0};
        std::vector<uint8_t> whole{255, 255, 255, 0, 255, 255, 255, 1, 255, 255, 255, 2, 255, 255, 255, 3};
        if (order == CL_BGRA)
            for (size_t i = 0; i < 16; i += 4) {
                std::swap(expected[i], expected[i + 2]);
                std::swap(whole[i], whole[i + 2]);
            }
        EXPECT_EQ(read_image(real, {0, 0, 0}, {4, 1, 1}), expected);
        EXPECT_EQ(read_image(natural, {0, 0, 0}, {4, 1, 1}), whole);
    }
}

// Section 8.3.1.1. All numbers of a channel are in one image.
TEST_F(Sampling, NormalizedNumbersAreWithinTheBoundOfTheirConversion) {
    const OwnedProgram program = build(R"(
        kernel void copy(read_only image2d_t from, global float* to) {
            const int x = get_global_id(0), y = get_global_id(1);
            to[y * get_global_size(0) + x] = read_imagef(from, (int2)(x, y)).x;
        })");
    const OwnedKernel kernel = make_kernel(program, "copy");
    struct Channel {
        cl_channel_type type;
        size_t bytes;
        int most;
        bool is_signed;
    };
    for (const Channel& channel : {Channel{CL_UNORM_INT8, 1, 255, false}, Channel{CL_SNORM_INT8, 1, 127, true},
                                   Channel{CL_UNORM_INT16, 2, 65535, false}, Channel{CL_SNORM_INT16, 2, 32767, true}}) {
        const Triple extent{256, channel.bytes == 1 ? size_t{1} : size_t{256}, 1};
        const size_t count = extent[0] * extent[1];
        std::vector<uint8_t> bytes(count * channel.bytes);
        for (size_t i = 0; i < count; ++i)
            std::memcpy(&bytes[i * channel.bytes], &i, channel.bytes);
        const OwnedMem from =
            make_image({CL_R, channel.type}, describe(CL_MEM_OBJECT_IMAGE2D, extent), CL_MEM_READ_ONLY);
        write_image(from, {0, 0, 0}, extent, bytes.data());
        const OwnedMem to = make_buffer(count * sizeof(float));
        set_arguments(kernel, static_cast<cl_mem>(from), static_cast<cl_mem>(to));
        const size_t size[] = {extent[0], extent[1]};
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, size, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        const auto found = read<float>(to, count);
        for (size_t i = 0; i < count; ++i) {
            const int number = !channel.is_signed   ? static_cast<int>(i)
                               : channel.bytes == 1 ? static_cast<int8_t>(i)
                                                    : static_cast<int16_t>(i);
            const double expected = std::max(static_cast<double>(number) / channel.most, -1.0);
            const double unit = std::ldexp(1.0, std::ilogb(expected == 0 ? 1.0 : expected) - 23);
            const bool is_exact = number == 0 || std::fabs(expected) == 1;
            ASSERT_NEAR(static_cast<double>(found[i]), expected, is_exact ? 0 : 1.5 * unit)
                << number << " of " << channel.most;
        }
    }
}

TEST_F(Sampling, DepthImagesAreOneValue) {
    const OwnedProgram program = build(R"(
        #pragma OPENCL EXTENSION cl_khr_depth_images : enable
        kernel void copy(read_only image2d_depth_t from, write_only image2d_depth_t to, sampler_t sampler) {
            const int2 at = (int2)(get_global_id(0) % 13, get_global_id(0) / 13);
            write_imagef(to, at, read_imagef(from, sampler, at) + read_imagef(from, sampler, convert_float2(at) + 0.5f));
        })");
    const OwnedKernel kernel = make_kernel(program, "copy");
    const cl_image_format format{CL_DEPTH, CL_FLOAT};
    const OwnedMem from = make_image(format, describe(CL_MEM_OBJECT_IMAGE2D, {13, 5, 1}));
    const OwnedMem to = make_image(format, describe(CL_MEM_OBJECT_IMAGE2D, {13, 5, 1}));
    std::vector<float> values(65);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i) / 65;
    write_image(from, {0, 0, 0}, {13, 5, 1}, values.data());
    const OwnedSampler sampler = make_sampler({CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST});
    run(kernel, static_cast<cl_mem>(from), static_cast<cl_mem>(to), static_cast<cl_sampler>(sampler));
    for (float& value : values)
        value += value;
    EXPECT_EQ(read_image<float>(to, {0, 0, 0}, {13, 5, 1}), values);
}

}  // namespace
}  // namespace polder::test
