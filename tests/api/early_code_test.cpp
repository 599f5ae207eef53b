// Code that is made when a kernel object is created. POCL_DEBUG=compiler reports each code that is made in a line on stderr, which the
// tests count; the cache is off.
#include "support/fixture.h"
#include "support/made_code.h"
#include "support/native_kernels.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <gmock/gmock.h>
#include <memory>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

// For the leak sanitizer: a child ends with what its parent made, which it does not release.
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

namespace polder::test {
namespace {

class EarlyCode : public ContextTest {
protected:
    void SetUp() override {
        if (std::thread::hardware_concurrency() < 2)
            GTEST_SKIP() << "with one processor, nothing is made ahead";
        ContextTest::SetUp();
        if (std::ranges::any_of(devices, [](cl_device_id device) { return !executes_native_kernels(device); }))
            GTEST_SKIP() << "only code for the host's processors is reported in a line";
        errors = std::make_unique<MadeCode>();
        targets = devices.size() > 1 ? 2 : 1;
    }
    [[nodiscard]] size_t made(const std::string& name) const { return errors->made(name); }
    // Whether code was made that many times, within a time in which any compilation ends.
    [[nodiscard]] bool is_made_soon(const std::string& name, size_t times = 1) const {
        for (int i = 0; i < 60000; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(1)))
            if (made(name) >= times)
                return true;
        return false;
    }
    // Requests are served in order: when this one is for every target, those before it have at least begun, and no message of it comes
    // during the next test.
    void serve_all_requests() {
        const OwnedProgram marker = build("kernel void marker(global int* a) { a[0] = 1; }");
        const OwnedKernel kernel = make_kernel(marker, "marker");
        ASSERT_TRUE(is_made_soon("marker", targets));
    }
    // Waits until code was made `expected` times, then until all requests are served. Returns how often it was made in the end.
    [[nodiscard]] size_t made_in_the_end(const std::string& name, size_t expected) {
        EXPECT_TRUE(is_made_soon(name, expected));
        serve_all_requests();
        return made(name);
    }
    // The first of 64 results of kernel(global int* a), or -1.
    cl_int run(cl_kernel kernel, const size_t* local = nullptr) {
        const OwnedMem buffer = make_buffer(64 * sizeof(cl_int));
        const size_t global = 64;
        if (clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()) ||
            clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, local, 0, nullptr, nullptr))
            return -1;
        return read<cl_int>(buffer, 64)[0];
    }
    std::unique_ptr<MadeCode> errors;
    size_t targets = 1;  // a processor and a discrete device have code of their own
};

TEST_F(EarlyCode, OfAKernelObjectIsMadeOnceAndFoundByItsLaunch) {
    const OwnedProgram program = build("kernel void one(global int* a) { a[get_global_id(0)] = 11; }\n"
                                       "kernel void two(global int* a) { a[get_global_id(0)] = 12; }\n");
    const OwnedKernel kernel = make_kernel(program, "one");
    ASSERT_TRUE(is_made_soon("one"));
    EXPECT_EQ(run(kernel), 11);
    const OwnedKernel again = make_kernel(program, "one");
    EXPECT_EQ(made_in_the_end("one", targets), targets);
    EXPECT_EQ(made("two"), 0);  // has no kernel object
}

TEST_F(EarlyCode, OfARequiredSizeIsTheCodeOfItsLaunches) {
    const OwnedProgram program =
        build("kernel __attribute__((reqd_work_group_size(8, 1, 1))) void wanted(global int* a)"
              "{ a[get_global_id(0)] = (int)get_local_size(0); }");
    const OwnedKernel kernel = make_kernel(program, "wanted");
    ASSERT_TRUE(is_made_soon("wanted"));
    const size_t eight = 8;
    EXPECT_EQ(run(kernel, &eight), 8);
    EXPECT_EQ(made_in_the_end("wanted", targets), targets);
}

TEST_F(EarlyCode, OfAnotherSizeDoesNotReplaceTheCodeOfSmallGroups) {
    const OwnedProgram program =
        build("kernel void sized(global int* a) { a[get_global_id(0)] = (int)get_local_size(0); }");
    const OwnedKernel kernel = make_kernel(program, "sized");
    ASSERT_TRUE(is_made_soon("sized"));
    const size_t four = 4;
    EXPECT_EQ(run(kernel, &four), 4);
    EXPECT_EQ(made_in_the_end("sized", targets + 1), targets + 1);  // one of its own for the launch
}

TEST_F(EarlyCode, IsNotMadeTwiceForALaunchAtOnce) {
    const OwnedProgram program = build("kernel void quick(global int* a) { a[get_global_id(0)] = 5; }");
    const OwnedKernel kernel = make_kernel(program, "quick");
    EXPECT_EQ(run(kernel), 5);
    EXPECT_EQ(made_in_the_end("quick", targets), targets);
}

TEST_F(EarlyCode, OfReleasedKernelsThatHasNotBegunIsNotMade) {
    constexpr size_t count = 40;
    std::string source;
    for (size_t i = 0; i < count; ++i)
        source += "kernel void dropped" + std::to_string(i) + "(global int* a) { a[0] = " + std::to_string(i) + "; }\n";
    const OwnedProgram program = build(source);
    std::vector<cl_kernel> kernels(count);
    ASSERT_EQ(clCreateKernelsInProgram(program, count, kernels.data(), nullptr), CL_SUCCESS);
    for (cl_kernel kernel : kernels)
        ASSERT_EQ(clReleaseKernel(kernel), CL_SUCCESS);
    serve_all_requests();
    EXPECT_LT(made("dropped"), count);
}

TEST_F(EarlyCode, OfManyKernelsOfAProgramHasALimit) {
    constexpr size_t count = 80, limit = 64;
    std::string source;
    for (size_t i = 0; i < count; ++i)
        source += "kernel void many" + std::to_string(i) + "() {}\n";
    const OwnedProgram program = build(source);
    std::vector<cl_kernel> kernels(count);
    ASSERT_EQ(clCreateKernelsInProgram(program, count, kernels.data(), nullptr), CL_SUCCESS);
    serve_all_requests();
    for (cl_kernel kernel : kernels)
        ASSERT_EQ(clReleaseKernel(kernel), CL_SUCCESS);
    EXPECT_LE(made("many"), limit * targets);
    EXPECT_GT(made("many"), limit / 2);
}

// Code with images is made for their formats, which are not known before the launch. The number of versions has a limit.
TEST_F(EarlyCode, OfImagesIsLeftToTheLaunchAndHasALimit) {
    constexpr size_t versions_max = 8, launches_before_a_version = 8, at_once_max = 3;
    const OwnedProgram program = build("kernel void painted(read_only image2d_t image, global float4* a)"
                                       "{ a[get_global_id(0)] = read_imagef(image, (int2)(get_global_id(0), 0)); }");
    const OwnedKernel kernel = make_kernel(program, "painted");
    serve_all_requests();
    EXPECT_EQ(made("painted"), 0);
    const OwnedMem to = make_buffer(64 * sizeof(cl_float4));
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
    size_t formats = 0;
    for (const cl_channel_order order : {CL_RGBA, CL_R, CL_RG})
        for (const cl_channel_type type : {CL_FLOAT, CL_HALF_FLOAT, CL_UNORM_INT8, CL_UNORM_INT16, CL_SNORM_INT8}) {
            const cl_image_format format{order, type};
            cl_image_desc description{};
            description.image_type = CL_MEM_OBJECT_IMAGE2D;
            description.image_width = 64;
            description.image_height = 1;
            cl_int error = CL_SUCCESS;
            const OwnedMem image = clCreateImage(context, CL_MEM_READ_ONLY, &format, &description, nullptr, &error);
            ASSERT_EQ(error, CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
            for (size_t launch = 0; launch < launches_before_a_version; ++launch) {
                const size_t global = 64;
                ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr),
                          CL_SUCCESS);
                EXPECT_TRUE(formats > 0 || made("painted") == 1);
            }
            ASSERT_EQ(clFinish(queue), CL_SUCCESS);
            ++formats;
            // The first formats', code for any image, and one for each other format that was launched often.
            EXPECT_EQ(made("painted"), formats <= at_once_max ? formats : std::min(formats, versions_max) + 1)
                << formats;
        }
}

constexpr const char* long_source = "kernel void lengthy(global float4* a) { float4 v = a[get_global_id(0)];\n"
                                    "for (int i = 0; i < 9; ++i) v = pow(sin(v), cos(v)) + tgamma(exp(v)) + erf(v);\n"
                                    "a[get_global_id(0)] = v; }\n"
                                    "kernel void brief(global int* a) { a[get_global_id(0)] = 6; }";

TEST_F(EarlyCode, ThatIsBeingMadeDoesNotHoldUpAnotherKernel) {
    const OwnedProgram program = build(long_source);
    const OwnedKernel kernel = make_kernel(program, "lengthy");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const OwnedKernel other = make_kernel(program, "brief");
    EXPECT_EQ(run(other), 6);
    EXPECT_EQ(made("brief"), 1);
    EXPECT_TRUE(is_made_soon("lengthy"));
}

TEST_F(EarlyCode, OfReleasedProgramsEndsByItself) {
    for (int i = 0; i < 5; ++i) {
        const OwnedProgram program = build(long_source);
        const OwnedKernel kernel = make_kernel(program, "lengthy");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    serve_all_requests();
}

TEST_F(EarlyCode, ThatIsBeingMadeDelaysAForkWhoseChildComputes) {
    const OwnedProgram program = build(long_source);
    const OwnedKernel kernel = make_kernel(program, "lengthy");
    const OwnedKernel other = make_kernel(program, "brief");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        std::_Exit(run(other) == 6 ? 7 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

// A kernel of 6,000 statements, which takes a second and more to compile.
std::string very_long_source() {
    std::string source = "kernel void endless(global float* a) { float x = a[get_global_id(0)], y = x, z = y;\n";
    for (int i = 0; i < 2000; ++i)
        source += "x = x * y + " + std::to_string(i) + "; y = y * z - x; z = sqrt(z) + y / x;\n";
    return source + "a[get_global_id(0)] = x; }";
}

TEST(EarlyCodeDeathTest, ThatTakesLongIsNotFinishedForAProcessThatEnds) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "with one processor, nothing is made ahead";
    const auto create_and_exit = [] {
        const cl_device_id device = all_devices()[0];
        cl_int error = CL_SUCCESS;
        cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        const std::string text = very_long_source();
        const char* source = text.c_str();
        cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
        clBuildProgram(program, 0, nullptr, "", nullptr, nullptr);
        clCreateKernel(program, "endless", &error);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        std::exit(error == CL_SUCCESS ? 7 : 1);
    };
    EXPECT_EXIT(create_and_exit(), testing::ExitedWithCode(7),
                testing::AllOf(testing::ContainsRegex("endless: abandoned|the compiler still runs"),
                               testing::Not(testing::HasSubstr("bytes of object code"))));
}

TEST_F(EarlyCode, OfReleasedProgramsIsNotFinished) {
    const std::string source = very_long_source();
    for (int i = 0; i < 2; ++i) {
        const OwnedProgram program = build(source);
        const OwnedKernel kernel = make_kernel(program, "endless");
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    serve_all_requests();
    EXPECT_EQ(made("endless"), 0);
    EXPECT_GE(errors->lines("endless", "abandoned"), 1U);
}

TEST(EarlyCodeDeathTest, ThatIsBeingMadeEndsBeforeTheProcess) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto create_and_exit = [] {
        const cl_device_id device = all_devices()[0];
        cl_int error = CL_SUCCESS;
        cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        const char* source = long_source;
        cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
        clBuildProgram(program, 0, nullptr, "", nullptr, nullptr);
        clCreateKernel(program, "lengthy", &error);
        clCreateKernel(program, "brief", &error);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::exit(error == CL_SUCCESS ? 7 : 1);
    };
    for (int i = 0; i < 3; ++i)
        EXPECT_EXIT(create_and_exit(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace polder::test
