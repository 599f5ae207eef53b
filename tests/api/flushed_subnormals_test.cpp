// Programs that are built with -cl-denorms-are-zero: subnormal numbers are zeros on processors that can do that, and everything else is as without the
// option: functions of usual numbers, subnormal halves (which are usual numbers as floats), and programs beside them.
#include "support/fixture.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace polder::test {
namespace {

constexpr const char* flushed = "-cl-denorms-are-zero";

class FlushedSubnormals : public ContextTest {
protected:
    // The results of a kernel k(in, out), so many for each work-item.
    template <typename Out, typename In>
    std::vector<Out> run(cl_program program, cl_device_id device, std::vector<In> input, size_t items,
                         size_t per_item = 1) {
        const OwnedQueue on = make_queue(device);
        const OwnedMem in = make_buffer(input.size() * sizeof(In), CL_MEM_COPY_HOST_PTR, input.data());
        const OwnedMem out = make_buffer(items * per_item * sizeof(Out));
        const OwnedKernel kernel = make_kernel(program, "k");
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), in.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        return read<Out>(out, items * per_item, on);
    }
};

bool is_processor(cl_device_id device) {
    cl_device_type type = 0;
    EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
    return (type & CL_DEVICE_TYPE_CPU) != 0;
}

constexpr const char* halves_of_numbers = R"(
kernel void k(global const REAL* in, global REAL* out) {
    const size_t i = get_global_id(0);
    out[i] = in[i] * (REAL)0.5;
})";

template <typename Real>
void expect_zeros(const std::vector<Real>& results, size_t usual) {
    for (size_t i = 0; i < results.size(); ++i) {
        if (i < usual)
            EXPECT_EQ(results[i], Real{0.5}) << i;
        else
            EXPECT_EQ(results[i], Real{0}) << i;
    }
}

// The smallest normal number, whose half is subnormal, and subnormal numbers.
template <typename Real>
std::vector<Real> usual_and_small(size_t usual, size_t count) {
    std::vector<Real> input(count, std::numeric_limits<Real>::min());
    std::fill_n(input.begin(), usual, Real{1});
    for (size_t i = usual + 1; i < count; i += 2)
        input[i] = std::numeric_limits<Real>::denorm_min() * static_cast<Real>(2 * i);
    return input;
}

#if defined(__x86_64__)
TEST_F(FlushedSubnormals, AreZeros) {
    constexpr size_t usual = 100;
    constexpr size_t count = 1000;
    const OwnedProgram floats = build(halves_of_numbers, "-DREAL=float -cl-denorms-are-zero");
    const OwnedProgram doubles = build(halves_of_numbers, "-cl-denorms-are-zero -DREAL=double");
    for (const cl_device_id device : devices) {
        expect_zeros(run<float>(floats, device, usual_and_small<float>(usual, count), count), usual);
        if (is_processor(device))  // NVIDIA's processors flush floats alone
            expect_zeros(run<double>(doubles, device, usual_and_small<double>(usual, count), count), usual);
    }
}

// A program from a binary keeps the option; linking adds it, and an object without it takes it from the whole.
TEST_F(FlushedSubnormals, StayZeros_InBinariesAndLinkedPrograms) {
    const std::vector<float> input = usual_and_small<float>(1, 64);
    const auto are_zeros = [&](cl_program program) {
        return run<float>(program, devices[0], input, input.size())[1] == 0;
    };
    const OwnedProgram built = build(halves_of_numbers, "-DREAL=float -cl-denorms-are-zero");
    const OwnedProgram exact = build(halves_of_numbers, "-DREAL=float");
    EXPECT_TRUE(are_zeros(built));
    EXPECT_FALSE(are_zeros(exact));

    std::vector<size_t> sizes(devices.size());
    ASSERT_EQ(clGetProgramInfo(built, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
              CL_SUCCESS);
    std::vector<std::vector<unsigned char>> binaries;
    std::vector<unsigned char*> pointers;
    for (const size_t size : sizes) {
        binaries.emplace_back(size);
        pointers.push_back(binaries.back().data());
    }
    ASSERT_EQ(clGetProgramInfo(built, CL_PROGRAM_BINARIES, pointers.size() * sizeof(void*), pointers.data(), nullptr),
              CL_SUCCESS);
    const unsigned char* first = pointers[0];
    cl_int error = CL_SUCCESS;
    const OwnedProgram loaded{
        clCreateProgramWithBinary(context, 1, devices.data(), sizes.data(), &first, nullptr, &error)};
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(loaded, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    EXPECT_TRUE(are_zeros(loaded));

    const auto compiled = [&](const char* source, const char* options) {
        OwnedProgram object{clCreateProgramWithSource(context, 1, &source, nullptr, &error)};
        EXPECT_EQ(clCompileProgram(object, 0, nullptr, options, 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
        return object;
    };
    const OwnedProgram kernels =
        compiled("float halved(float); kernel void k(global const float* in, global float* out) {"
                 " size_t i = get_global_id(0); out[i] = halved(in[i]); }",
                 flushed);
    const OwnedProgram function = compiled("float halved(float x) { return x * 0.5f; }", "");
    const OwnedProgram same = compiled("float halved(float x) { return x * 0.5f; }", flushed);
    const auto linked = [&](cl_program object, const char* options) {
        const cl_program objects[] = {kernels, object};
        OwnedProgram whole{clLinkProgram(context, 0, nullptr, options, 2, objects, nullptr, nullptr, &error)};
        EXPECT_EQ(error, CL_SUCCESS);
        return whole;
    };
    EXPECT_FALSE(are_zeros(linked(function, "")));
    EXPECT_TRUE(are_zeros(linked(function, flushed)));
    EXPECT_TRUE(are_zeros(linked(same, "")));
}
#endif

// Each function of usual numbers, with and without the option. Results that are subnormal may be zero.
std::string source_of(const char* type) {
    std::string calls;
    size_t place = 0;
    const auto add = [&](const std::string& call) {
        calls += "    out[i * COUNT + " + std::to_string(place++) + "] = " + call + ";\n";
    };
    for (const char* name :
         {"acos",  "acosh", "acospi", "asin",  "asinh", "asinpi", "atan",  "atanh", "atanpi", "cbrt",
          "ceil",  "cos",   "cosh",   "cospi", "erf",   "erfc",   "exp",   "exp2",  "exp10",  "expm1",
          "fabs",  "floor", "lgamma", "log",   "log2",  "log10",  "log1p", "logb",  "rint",   "round",
          "rsqrt", "sin",   "sinh",   "sinpi", "sqrt",  "tan",    "tanh",  "tanpi", "tgamma", "trunc"})
        add(std::string{name} + "(x)");
    for (const char* name : {"atan2", "atan2pi", "copysign", "fdim", "fmod", "hypot", "maxmag", "nextafter", "pow",
                             "powr", "remainder", "step", "fmax"})
        add(std::string{name} + "(x, y)");
    for (const char* call :
         {"fma(x, y, z)", "mad(x, y, z)", "mix(x, y, z)", "smoothstep(y, y + 2, x)", "x / y", "1 / x",
          "ldexp(x, (int)y % 20)", "pown(x, (int)y % 20)", "rootn(x, (int)y % 5 + 6)", "sign(x)", "degrees(x)",
          "radians(x)", "clamp(x, y, y + 1)", "(REAL)ilogb(x)", "dot((REAL4)(x), (REAL4)(y, z, x, y))",
          "length((REAL4)(x, y, z, x))", "distance((REAL3)(x, y, z), (REAL3)(y, z, x))",
          "normalize((REAL3)(x, y, z)).y", "cross((REAL3)(x, y, z), (REAL3)(y, z, x)).x"})
        add(call);
    for (const char* call : {"fract(x, &r); out[i * COUNT + %] += r", "modf(x, &r); out[i * COUNT + %] += r",
                             "sincos(x, &r); out[i * COUNT + %] += r", "frexp(x, &n); out[i * COUNT + %] += n",
                             "remquo(x, y, &n); out[i * COUNT + %] += n", "lgamma_r(x, &n); out[i * COUNT + %] += n"}) {
        std::string text{call};
        text.replace(text.find('%'), 1, std::to_string(place));
        add(text);
    }
    const std::string real{type};
    return "#define REAL " + real + "\n#define REAL3 " + real + "3\n#define REAL4 " + real + "4\n#define COUNT " +
           std::to_string(place) +
           "\nkernel void k(global const REAL* in, global REAL* out) {\n    const size_t i = get_global_id(0);\n"
           "    const REAL x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2];\n    REAL r;\n    int n;\n" +
           calls + "}\n";
}

// Results of the same work-items, COUNT for each.
template <typename Real>
size_t differences(const std::vector<Real>& exact, const std::vector<Real>& found) {
    size_t wrong = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
        const bool is_same = (exact[i] == found[i] && std::signbit(exact[i]) == std::signbit(found[i])) ||
                             (std::isnan(exact[i]) && std::isnan(found[i]));
        const bool may_be_zero = std::fpclassify(exact[i]) == FP_SUBNORMAL && found[i] == 0;
        if (!is_same && !may_be_zero && wrong++ < 10)
            ADD_FAILURE() << "result " << i << ": " << std::hexfloat << exact[i] << ", flushed " << found[i];
    }
    return wrong;
}

TEST_F(FlushedSubnormals, FunctionsOfUsualNumbers_AreTheSame) {
    constexpr size_t items = 4096;
    const auto compare = [&]<typename Real>(const char* type, Real) {
        const std::string source = source_of(type);
        const size_t per_item = std::stoul(source.substr(source.find("COUNT ") + 6));
        std::mt19937 random{391};
        std::uniform_real_distribution<Real> exponent(-20, 20);
        std::uniform_real_distribution<Real> mantissa(-1, 1);
        std::vector<Real> input(items * 3);
        for (size_t i = 0; i < input.size(); ++i)
            input[i] = i % 6 < 3 ? mantissa(random) : std::exp2(exponent(random)) * mantissa(random);
        const OwnedProgram exact = build(source, "");
        const OwnedProgram flushing = build(source, flushed);
        for (const cl_device_id device : devices)
            EXPECT_EQ(differences(run<Real>(exact, device, input, items, per_item),
                                  run<Real>(flushing, device, input, items, per_item)),
                      0u)
                << type;
    };
    compare("float", 0.0f);
    compare("double", 0.0);
}

// Squares of the parts are subnormal, or nearly, and the lengths are not.
TEST_F(FlushedSubnormals, LengthsOfSmallVectors_AreNearlyTheSame) {
    constexpr size_t items = 4096;
    const auto compare = [&]<typename Real>(const std::string& type, Real least, Real most) {
        const std::string source = "#define COUNT 4\nkernel void k(global const " + type + "* in, global " + type +
                                   "* out) {\n    const size_t i = get_global_id(0);\n    const " + type +
                                   " x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2];\n    out[4 * i] = length((" +
                                   type + "2)(x, y));\n    out[4 * i + 1] = length((" + type +
                                   "4)(x, y, z, x));\n    out[4 * i + 2] = distance((" + type + "3)(x, y, z), (" +
                                   type + "3)(0));\n    out[4 * i + 3] = normalize((" + type + "3)(x, y, z)).y;\n}\n";
        std::mt19937 random{397};
        std::uniform_real_distribution<Real> exponent(least, most);
        std::vector<Real> input(items * 3);
        for (Real& number : input)
            number = std::exp2(exponent(random)) * (random() % 2 != 0 ? 1 : -1);
        const OwnedProgram exact = build(source, "");
        const OwnedProgram flushing = build(source, flushed);
        for (const cl_device_id device : devices) {
            const std::vector<Real> expected = run<Real>(exact, device, input, items, 4),
                                    found = run<Real>(flushing, device, input, items, 4);
            size_t wrong = 0;
            for (size_t i = 0; i < expected.size(); ++i)
                if (std::abs(expected[i] - found[i]) > std::numeric_limits<Real>::epsilon() * std::abs(expected[i]) &&
                    wrong++ < 10)
                    ADD_FAILURE() << "result " << i << ": " << std::hexfloat << expected[i] << ", flushed " << found[i];
            EXPECT_EQ(wrong, 0u) << type;
        }
    };
    compare("float", -70.0f, -45.0f);
    compare("double", -530.0, -475.0);
}

// A subnormal half is a usual float.
TEST_F(FlushedSubnormals, HalvesThatAreSubnormal_KeepTheirValues) {
    constexpr const char* source = R"(
kernel void k(global const half* in, global float* out) {
    const size_t i = get_global_id(0);
    out[3 * i] = vload_half(i, in);
    out[3 * i + 1] = convert_float(in[i]);
    vstore_half2((float2)(out[3 * i] * 0.5f, out[3 * i] * 0.25f), 3 * i + 2, (global half*)out);
})";
    std::vector<cl_ushort> input(0x7c00);
    for (size_t i = 0; i < input.size(); ++i)
        input[i] = static_cast<cl_ushort>(i);
    const OwnedProgram exact = build(source, "");
    const OwnedProgram flushing = build(source, flushed);
    for (const cl_device_id device : devices)
        EXPECT_EQ(run<cl_uint>(exact, device, input, input.size(), 3),
                  run<cl_uint>(flushing, device, input, input.size(), 3));
}

}  // namespace
}  // namespace polder::test
