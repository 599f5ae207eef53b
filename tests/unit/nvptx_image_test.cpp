// Images in PTX: an argument is a descriptor within the kernel's parameter, which the built-in functions read in place.
#include "ptx_support.h"

#include <polder/image_abi.h>
#include <polder/ptx_abi.h>

namespace polder::compiler::test {
namespace {

PtxOutcome image_kernel(const std::string& source, const std::string& processor) {
    return ptx_with({"cl_khr_fp16", "cl_khr_depth_images", "cl_khr_3d_image_writes"},
                    {"__opencl_c_images", "__opencl_c_read_write_images", "__opencl_c_3d_image_writes"}, source,
                    processor);
}

struct ImageType {
    std::string name;
    std::string float_place;
    std::string int_place;
    bool is_depth = false;
    bool is_sampled = true;
};
const ImageType all_types[] = {
    {"image1d_t", "f", "i"},
    {"image1d_array_t", "(float2)f", "(int2)i"},
    {"image1d_buffer_t", "", "i", false, false},
    {"image2d_t", "(float2)f", "(int2)i"},
    {"image2d_array_t", "(float4)f", "(int4)i"},
    {"image2d_depth_t", "(float2)f", "(int2)i", true},
    {"image2d_array_depth_t", "(float4)f", "(int4)i", true},
    {"image3d_t", "(float4)f", "(int4)i"},
};

// Every function that reads, writes or describes an image of the type.
std::string every_function(const ImageType& type) {
    const std::string at = type.int_place;
    std::string body = "int i = get_global_id(0); float f = i + 0.5f; float4 c = 0; int4 d = 0;\n";
    const std::string to_float = type.is_depth ? "c.x += " : "c += ";
    if (type.is_sampled)
        body +=
            to_float + "read_imagef(a, s, " + type.float_place + ");\n" + to_float + "read_imagef(a, s, " + at + ");\n";
    body += to_float + "read_imagef(a, " + at + ");\n" + to_float + "read_imagef(b, " + at + ");\n";
    if (!type.is_depth) {
        body += "d += read_imagei(a, " + at + ") + as_int4(read_imageui(b, " + at +
                "));\n"
                "c += convert_float4(read_imageh(a, " +
                at +
                "));\n"
                "write_imagei(w, " +
                at + ", d); write_imageui(b, " + at +
                ", as_uint4(d));\n"
                "write_imageh(w, " +
                at + ", convert_half4(c));\n";
        if (type.is_sampled)
            body += "d += read_imagei(a, s, " + type.float_place + ") + as_int4(read_imageui(a, s, " + at + "));\n";
    }
    const std::string color = type.is_depth ? "c.x" : "c";
    body += "write_imagef(w, " + at + ", " + color + "); write_imagef(b, " + at + ", " + color +
            ");\n"
            "d.x += get_image_width(a) + get_image_channel_order(w) + get_image_channel_data_type(b);\n"
            "out[i] = convert_float4(d) + c;";
    return "kernel void k(read_only " + type.name + " a, sampler_t s, write_only " + type.name + " w, read_write " +
           type.name + " b, global float4* out) {\n" + body + "\n}";
}

TEST(NvptxImages, EveryFunctionOfEveryType_IsAssembledForEveryProcessor) {
    for (const ImageType& type : all_types)
        for (const char* processor : all_processors)
            EXPECT_EQ(image_kernel(every_function(type), processor).error, "") << type.name << " for " << processor;
}

TEST(NvptxImages, ADescriptor_IsReadFromTheParameter) {
    const PtxOutcome ptx =
        image_kernel("kernel void k(global int* out, read_only image2d_t a, write_only image2d_t b) {"
                     "  *out = get_image_height(b); }",
                     "sm_90");
    EXPECT_EQ(ptx.error, "");
    const uint64_t place = 8 + sizeof(ImageDescriptor) + offsetof(ImageDescriptor, height);
    EXPECT_TRUE(ptx.has("ld.param.b32") && ptx.has("+" + std::to_string(place) + "]")) << ptx.code.code;
    EXPECT_EQ(ptx.code.arguments_size, 8 + 2 * sizeof(ImageDescriptor));
}

// Functions that are not inlined get a pointer into the parameter; each thread would otherwise copy it to its own memory.
TEST(NvptxImages, FunctionsGetTheAddressOfADescriptor) {
    const PtxOutcome ptx = image_kernel("__attribute__((noinline)) float4 f(read_only image2d_t a, int i) {"
                                        "  return read_imagef(a, (int2)(i, i)); }"
                                        "kernel void k(read_only image2d_t a, global float4* out) {"
                                        "  out[get_global_id(0)] = f(a, get_global_id(0)); }",
                                        "sm_70");
    EXPECT_EQ(ptx.error, "");
    EXPECT_TRUE(ptx.has("cvta.param.u64")) << ptx.code.code;
    EXPECT_FALSE(ptx.has("__local_depot")) << ptx.code.code;
}

TEST(NvptxImages, TheBitsOfASamplerInTheSource_AreKnown) {
    const auto with = [](const std::string& filter) {
        return image_kernel("constant sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | " +
                                filter +
                                "; kernel void k(read_only image2d_t a, global float4* out) {"
                                "  out[0] = read_imagef(a, s, (float2)(out[1].x, out[1].y)); }",
                            "sm_90");
    };
    const PtxOutcome nearest = with("CLK_FILTER_NEAREST"), linear = with("CLK_FILTER_LINEAR");
    EXPECT_EQ(nearest.error, "");
    EXPECT_EQ(linear.error, "");
    EXPECT_FALSE(nearest.has("polder_image_linear")) << nearest.code.code;
    EXPECT_TRUE(linear.has("polder_image_linear"));
}

// More than 4352 bytes of parameters need a newer version of PTX.
TEST(NvptxImages, AsManyArgumentsAsTheDeviceReports) {
    std::string parameters, body;
    for (int i = 0; i < 128; ++i) {
        const std::string name = "a" + std::to_string(i);
        parameters += "read_only image2d_t " + name + ", ";
        body += "sum += read_imagef(" + name + ", (int2)(0, 0));";
    }
    const std::string source =
        "kernel void k(" + parameters + "global float4* out) { float4 sum = 0; " + body + " *out = sum; }";
    for (const char* processor : all_processors) {
        const PtxOutcome ptx = image_kernel(source, processor);
        EXPECT_EQ(ptx.error, "") << processor;
        EXPECT_GT(ptx.code.arguments_size, 4352u);
    }
    EXPECT_TRUE(image_kernel(source, "sm_90").has(".version 8.1"));
}

}  // namespace
}  // namespace polder::compiler::test
