// Code for known images and samplers: it runs in lanes without calls, and each version is found in the cache as itself.
#include "compiler_support.h"
#include "module/module.h"
#include "targets/host/code_generator.h"

#include <CL/cl.h>
#include <polder/image_abi.h>

namespace polder::compiler::test {
namespace {

Outcome build_with_images(const std::string& source) {
    Target with_images = target();
    with_images.features.emplace_back("__opencl_c_images");
    std::string log;
    auto object = compile(CompileInput{source, {}, "-cl-std=CL3.0", with_images, true}, log);
    if (!object)
        return {nullptr, object.error().status(), log};
    auto program = link(LinkInput{{*object}, "", with_images, true}, log);
    return outcome_of(std::move(program), std::move(log));
}

KnownArgument image(uint32_t index, uint32_t order, uint32_t type, uint32_t bytes, ImageKind kind = ImageKind::other) {
    return {.index = index,
            .channel_order = order,
            .channel_type = type,
            .element_bytes = bytes,
            .kind = static_cast<uint32_t>(kind)};
}

struct Format {
    uint32_t order, type, bytes;
    ImageKind kind = ImageKind::other;
};
const Format real_formats[] = {
    {CL_RGBA, CL_FLOAT, 16, ImageKind::rgba_float},
    {CL_RGBA, CL_UNORM_INT8, 4, ImageKind::rgba_unorm8},
    {CL_R, CL_FLOAT, 4, ImageKind::r_float},
    {CL_R, CL_UNORM_INT8, 1, ImageKind::r_unorm8},
    {CL_RG, CL_FLOAT, 8},
    {CL_RG, CL_UNORM_INT8, 2},
    {CL_RGBA, CL_HALF_FLOAT, 8},
    {CL_R, CL_HALF_FLOAT, 2},
    {CL_RG, CL_HALF_FLOAT, 4},
    {CL_BGRA, CL_UNORM_INT8, 4},
    {CL_RGBA, CL_SNORM_INT16, 8},
    {CL_RGBA, CL_UNORM_INT16, 8},
};
const Format whole_formats[] = {
    {CL_RGBA, CL_SIGNED_INT32, 16, ImageKind::rgba_int32},
    {CL_RGBA, CL_UNSIGNED_INT8, 4, ImageKind::rgba_uint8},
    {CL_RGBA, CL_SIGNED_INT8, 4},
    {CL_R, CL_UNSIGNED_INT16, 2},
    {CL_R, CL_UNSIGNED_INT8, 1},
    {CL_R, CL_SIGNED_INT32, 4},
    {CL_RG, CL_SIGNED_INT16, 4},
};

void expect_lanes(const Outcome& built, const std::vector<KnownArgument>& known, workgroup::Lanes lanes) {
    const auto& compiled = static_cast<const CompiledModule&>(*built.module);
    const auto report =
        report_lanes({compiled, compiled.host_bitcode(), compiled.kernels()[0], std::nullopt, known}, lanes);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->scalar_loops, 0U) << report->reason;
    EXPECT_GE(report->loops, 1U) << report->reason;
    EXPECT_TRUE(report->serial_calls.empty()) << *report->serial_calls.begin();
}

std::string copy_source(const std::string& letter) {
    return "kernel void k(read_only image2d_t from, write_only image2d_t to, sampler_t s) {\n"
           "  const int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
           "  write_image" +
           letter + "(to, p, read_image" + letter + "(from, s, p)); }";
}

constexpr uint32_t nearest_clamped = 0x14, linear_to_edge = 0x22;

TEST(KnownArguments, CopiesOfCommonFormatsRunInLanes) {
    for (const bool is_whole : {false, true}) {
        const Outcome built = build_with_images(copy_source(is_whole ? "i" : "f"));
        ASSERT_TRUE(built.module) << built.log;
        const std::span<const Format> formats =
            is_whole ? std::span<const Format>(whole_formats) : std::span<const Format>(real_formats);
        for (const Format& format : formats) {
            SCOPED_TRACE(std::to_string(format.order) + " " + std::to_string(format.type));
            expect_lanes(built,
                         {image(0, format.order, format.type, format.bytes, format.kind),
                          image(1, format.order, format.type, format.bytes, format.kind),
                          {.index = 2, .sampler = nearest_clamped}},
                         workgroup::Lanes::where_they_pay);
        }
    }
}

TEST(KnownArguments, LinearReadsOfCommonFormatsCanBeLanes) {
    const Outcome built =
        build_with_images("kernel void k(read_only image2d_t from, sampler_t s, global float4* to) {\n"
                          "  const int i = get_global_id(0);\n"
                          "  to[i] = read_imagef(from, s, to[i].xy); }");
    ASSERT_TRUE(built.module) << built.log;
    std::vector<Format> formats(std::begin(real_formats), std::end(real_formats));
    formats.push_back({CL_sRGBA, CL_UNORM_INT8, 4});
    for (const Format& format : formats) {
        SCOPED_TRACE(std::to_string(format.order) + " " + std::to_string(format.type));
        expect_lanes(
            built,
            {image(0, format.order, format.type, format.bytes, format.kind), {.index = 1, .sampler = linear_to_edge}},
            workgroup::Lanes::wherever_possible);
    }
}

// Along z all work-items read the same elements, which looks cheaper than x where the steps of coordinates are not followed.
TEST(KnownArguments, ReadsAtCoordinatesFromIdsAreLanesOfX) {
    const std::string begin =
        "kernel void k(read_only image2d_t from, sampler_t s, global float4* to, float2 moved) {\n"
        "  const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);\n"
        "  float2 at = (float2)(x, y) + moved;\n";
    const std::string end = "  to[(z * get_global_size(1) + y) * get_global_size(0) + x] = read_imagef(from, s, at); }";
    const auto expect_x = [](const Outcome& built, std::initializer_list<uint32_t> samplers) {
        ASSERT_TRUE(built.module) << built.log;
        for (const uint32_t sampler : samplers) {
            SCOPED_TRACE(sampler);
            const auto executable = *Executable::open(built.module, target());
            const CodeVersion version{{}, {image(0, CL_RGBA, CL_HALF_FLOAT, 8), {.index = 1, .sampler = sampler}}};
            ASSERT_TRUE(executable->code("k", version));
            EXPECT_EQ(executable->lane_dimensions("k", version).used, 0U);
        }
    };
    expect_x(build_with_images(begin + end), {linear_to_edge, nearest_clamped});
    const std::string normalized = "  at /= (float2)(get_image_width(from), get_image_height(from));\n";
    // To the edge, repeated and mirrored; linear and nearest.
    expect_x(build_with_images(begin + normalized + end), {0x23, 0x27, 0x29, 0x13, 0x17, 0x19});
}

// Of the vectors that are read, weighed and summed up, one element has an effect; the others are no reason to keep them whole.
TEST(KnownArguments, FiltersOfOneChannelRunInLanes) {
    const Outcome built = build_with_images(
        "constant sampler_t s = CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
        "kernel void k(read_only image2d_t from, write_only image2d_t to, float scale) {\n"
        "  const int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
        "  const float2 c = ((float2)(p.x, p.y) + 0.5f) * scale, low = floor(c);\n"
        "  const int2 at = convert_int2(low);\n"
        "  const float2 t = c - low;\n"
        "  const float4 wx = (float4)(1 - t.x, t.x, t.x * t.x, 1 + t.x), wy = (float4)(1 - t.y, t.y, t.y * t.y, 1 + "
        "t.y);\n"
        "  const float across[4] = {wx.x, wx.y, wx.z, wx.w}, down[4] = {wy.x, wy.y, wy.z, wy.w};\n"
        "  float4 sum = 0;\n"
        "  for (int j = 0; j < 4; ++j) {\n"
        "    float4 row = 0;\n"
        "    for (int i = 0; i < 4; ++i) row += read_imagef(from, s, at + (int2)(i - 1, j - 1)) * across[i];\n"
        "    sum += row * down[j];\n"
        "  }\n"
        "  write_imagef(to, p, sum); }");
    ASSERT_TRUE(built.module) << built.log;
    expect_lanes(
        built,
        {image(0, CL_R, CL_UNORM_INT8, 1, ImageKind::r_unorm8), image(1, CL_R, CL_UNORM_INT8, 1, ImageKind::r_unorm8)},
        workgroup::Lanes::where_they_pay);
}

// Functions of the program that take images are as if they were written in the kernel; those that call powers stay calls.
TEST(KnownArguments, FunctionsOfTheProgramAreFollowed) {
    const Outcome built =
        build_with_images("constant sampler_t s = CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n"
                          "__attribute__((noinline)) float4 at(read_only image2d_t image, int2 p) {\n"
                          "  return read_imagef(image, s, p); }\n"
                          "kernel void k(read_only image2d_t a, read_only image2d_t b, global float4* to) {\n"
                          "  const int i = get_global_id(0);\n"
                          "  to[i] = at(a, (int2)(i, 1)) + at(b, (int2)(i, 2)); }");
    ASSERT_TRUE(built.module) << built.log;
    expect_lanes(built, {image(0, CL_RG, CL_HALF_FLOAT, 4), image(1, CL_RGBA, CL_SNORM_INT8, 4)},
                 workgroup::Lanes::where_they_pay);
    const auto& compiled = static_cast<const CompiledModule&>(*built.module);
    const std::vector<KnownArgument> curved{image(0, CL_sRGBA, CL_UNORM_INT8, 4), image(1, CL_RG, CL_HALF_FLOAT, 4)};
    EXPECT_TRUE(generate_code({compiled, compiled.host_bitcode(), compiled.kernels()[0], std::nullopt, curved}));
}

// Reads (0, 0) of an image by code for `known`; a process of its own each time, as far as the executable knows.
float first_component(const Outcome& built, const KnownArgument& known, void* elements) {
    const auto executable = *Executable::open(built.module, target());
    const auto code = executable->code("k", CodeVersion{{}, {known}});
    if (!code)
        return ADD_FAILURE() << code.error().detail(), 0.0f;
    struct alignas(16) Arguments {
        ImageDescriptor image;
        float* to;
    } arguments{};
    alignas(16) float color[4] = {};
    arguments.image = {.data = reinterpret_cast<uint64_t>(elements),
                       .row_pitch = 64,
                       .slice_pitch = 64,
                       .width = 1,
                       .height = 1,
                       .depth = 1,
                       .channel_order = known.channel_order,
                       .channel_type = known.channel_type,
                       .element_bytes = known.element_bytes,
                       .kind = known.kind,
                       .reserved = 0};
    arguments.to = color;
    LaunchContext context{};
    for (int d = 0; d < 3; ++d)
        context.global_size[d] = context.local_size[d] = context.num_groups[d] = 1;
    context.work_dim = 1;
    const uint64_t group[3] = {};
    std::vector<std::byte> scratch(4096);
    std::get<driver::HostCode>(**code).function(reinterpret_cast<const std::byte*>(&arguments), &context, group,
                                                scratch.data(), scratch.data());
    return color[0];
}

TEST(KnownArguments, VersionsAreDifferentInTheCache) {
    const Outcome built = build_with_images("kernel void k(read_only image2d_t image, global float4* to) {\n"
                                            "  *to = read_imagef(image, (int2)(0, 0)); }");
    ASSERT_TRUE(built.module) << built.log;
    alignas(16) float real[4] = {0.75f};
    alignas(16) uint8_t bytes[16] = {51};
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(first_component(built, image(0, CL_RGBA, CL_FLOAT, 16, ImageKind::rgba_float), real), 0.75f);
        EXPECT_NEAR(first_component(built, image(0, CL_RGBA, CL_UNORM_INT8, 4, ImageKind::rgba_unorm8), bytes), 0.2f,
                    1e-6);
        EXPECT_NEAR(first_component(built, image(0, CL_R, CL_UNORM_INT16, 2), bytes), 51 / 65535.0f, 1e-7);
    }
}

}  // namespace
}  // namespace polder::compiler::test
