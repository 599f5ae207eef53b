// Half precision (cl_khr_fp16) through the API: what devices report, halves as kernel arguments and in local memory, images.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <CL/cl_half.h>
#include <string>

namespace polder::test {
namespace {

cl_half half_of(float x) { return cl_half_from_float(x, CL_HALF_RTE); }

class Halves : public ContextTest {
protected:
    // Work-items of one group, on each device in turn.
    std::vector<cl_half> run(cl_kernel kernel, size_t count, cl_device_id device) {
        OwnedQueue on = make_queue(device);
        std::vector<cl_half> words(count, 0);
        OwnedMem out = make_buffer(count * sizeof(cl_half), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words.data());
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
        const size_t items = 16;
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, &items, 0, nullptr, nullptr), CL_SUCCESS);
        return read<cl_half>(out, count, on);
    }
};

TEST_F(Halves, AreReported) {
    for (const cl_device_id device : devices) {
        std::string extensions(8192, '\0');
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, extensions.size(), extensions.data(), nullptr),
                  CL_SUCCESS);
        EXPECT_NE(extensions.find("cl_khr_fp16"), std::string::npos);
        cl_device_fp_config config = 0;
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_HALF_FP_CONFIG, sizeof config, &config, nullptr), CL_SUCCESS);
        EXPECT_EQ(config, cl_device_fp_config{CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA});
        for (const cl_device_info name : {CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF}) {
            cl_uint width = 0;
            ASSERT_EQ(clGetDeviceInfo(device, name, sizeof width, &width, nullptr), CL_SUCCESS);
            EXPECT_GE(width, 1U);
        }
    }
}

// Halves by value, in a vector, in local memory, converted, and in every version of the language.
TEST_F(Halves, ArriveAsArgumentsAndInLocalMemory) {
    const char* const source = R"(
        #ifndef cl_khr_fp16
        #error "no macro"
        #endif
        #pragma OPENCL EXTENSION cl_khr_fp16 : enable
        kernel __attribute__((vec_type_hint(half4))) void k(global half* out, half factor, half3 v, local half* box) {
            const size_t i = get_local_id(0);
            box[i] = (half)i * factor;
            barrier(CLK_LOCAL_MEM_FENCE);
            out[i] = box[15 - i] + dot(v, (half3)(1.0h, 2.0h, 4.0h));
        })";
    for (const char* const options :
         {"-cl-std=CL1.2", "-cl-std=CL2.0", "-cl-std=CL3.0", "-cl-std=CL3.1", "-cl-opt-disable"}) {
        OwnedProgram program = build(source, options);
        OwnedKernel kernel = make_kernel(program, "k");
        const cl_half factor = half_of(0.5f);
        const cl_half vector[4] = {half_of(0.25f), half_of(1), half_of(-2), 0};
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(float), &factor), CL_INVALID_ARG_SIZE);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof factor, &factor), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof vector, vector), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 3, 16 * sizeof(cl_half), nullptr), CL_SUCCESS);
        for (const cl_device_id device : devices) {
            const std::vector<cl_half> found = run(kernel, 16, device);
            for (size_t i = 0; i < found.size(); ++i)
                EXPECT_EQ(cl_half_to_float(found[i]), static_cast<float>(15 - i) * 0.5f - 5.75f) << options << " " << i;
        }
    }
}

// Decision 170. The result is that of halves, not of floats: 2049 is no half.
TEST_F(Halves, NeedNoPragma) {
    for (const char* const options : {"", "-cl-std=CL1.1", "-cl-std=CL3.1"}) {
        OwnedProgram program = build("kernel void k(global half* out) { const half x = 2048.0h; out[get_local_id(0)] = "
                                     "(x + 1.0h) - x + sqrt(4.0h); }",
                                     options);
        OwnedKernel kernel = make_kernel(program, "k");
        for (const cl_device_id device : devices)
            for (const cl_half found : run(kernel, 16, device))
                EXPECT_EQ(cl_half_to_float(found), 2.0f) << options;
    }
}

// read_imageh and write_imageh, with and without a sampler, of a format with halves and one with normalized bytes.
TEST_F(Halves, AreReadFromImagesAndWrittenToThem) {
    OwnedProgram program = build(R"(
        #pragma OPENCL EXTENSION cl_khr_fp16 : enable
        constant sampler_t linear = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
        kernel void fill(global half* unused, write_only image2d_t image) {
            const int i = get_global_id(0);
            write_imageh(image, (int2)(i % 4, i / 4), (half4)((half)i / 16.0h, 0.0h, 1.0h, 0.25h));
        }
        kernel void get(global half* out, read_only image2d_t image) {
            const int i = get_global_id(0);
            const int2 at = (int2)(i % 4, i / 4);
            vstore4(read_imageh(image, at), 2 * i, out);
            vstore4(read_imageh(image, linear, convert_float2(at) + (float2)(1.0f, 0.5f)), 2 * i + 1, out);
        })",
                                 "-cl-std=CL3.0");
    OwnedKernel fill = make_kernel(program, "fill"), get = make_kernel(program, "get");
    for (const cl_channel_type type : {CL_HALF_FLOAT, CL_UNORM_INT8}) {
        const cl_image_format format{CL_RGBA, type};
        cl_image_desc description{};
        description.image_type = CL_MEM_OBJECT_IMAGE2D;
        description.image_width = description.image_height = 4;
        cl_int error = CL_INVALID_VALUE;
        OwnedMem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(fill, 1, sizeof(cl_mem), image.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(get, 1, sizeof(cl_mem), image.in()), CL_SUCCESS);
        for (const cl_device_id device : devices) {
            run(fill, 1, device);
            const std::vector<cl_half> found = run(get, 16 * 8, device);
            const float slack = type == CL_UNORM_INT8 ? 0.0025f : 0;
            for (size_t i = 0; i < 16; ++i) {
                const auto at = [&](size_t k) { return cl_half_to_float(found[8 * i + k]); };
                const float here = static_cast<float>(i) / 16, right = i % 4 == 3 ? here : here + 1.0f / 16;
                EXPECT_NEAR(at(0), here, slack) << i;
                EXPECT_EQ(at(1), 0.0f);
                EXPECT_EQ(at(2), 1.0f);
                EXPECT_NEAR(at(3), 0.25f, slack);
                EXPECT_NEAR(at(4), (here + right) / 2, slack + 0.001f) << i;
            }
        }
    }
}

}  // namespace
}  // namespace polder::test
