// Every math function of OpenCL C keeps the lanes of its kernel: called in a loop that is not unrolled, under a guard, in a
// function that is not inlined, and after a divergent branch. No call is made for each lane in turn, but those of functions that are
// marked as rarely called.
#include "functions.h"
#include "targets/host/code_generator.h"

#include <compiler/compiler.h>

#include <gtest/gtest.h>

namespace polder::math {
namespace {

struct Call {
    std::string name;
    Signature signature;
    bool has_double;
};

std::vector<Call> calls() {
    std::vector<Call> result;
    for (const Function& function : functions())
        result.push_back({function.name, function.signature, function.ulp_double >= 0});
    return result;
}

// An expression that calls the function with `x`, a value of type `type`.
std::string call_of(const Call& call, const std::string& x, const std::string& type, const std::string& ints) {
    const std::string first = call.name + "(" + x;
    switch (call.signature) {
    case Signature::t_from_t: return first + ")";
    case Signature::t_from_tt: return first + ", y)";
    case Signature::t_from_ttt: return first + ", y, y)";
    case Signature::t_from_tn: return first + ", m)";
    case Signature::n_from_t: return "convert_" + type + "(" + first + "))";
    case Signature::t_and_t: return first + ", &second)";
    case Signature::t_and_n: return first + ", &number) + convert_" + type + "(number)";
    case Signature::t_from_tt_and_n: return first + ", y, &number) + convert_" + type + "(number)";
    }
    return ints;
}

// The vector's elements are made of single numbers: kernels that access whole wide vectors in memory have no lanes.
std::string source_of(const Call& call, const std::string& scalar, int width) {
    const std::string w = width == 1 ? "" : std::to_string(width);
    const std::string type = scalar + w, ints = "int" + w;
    const auto called = [&](const char* x) { return call_of(call, x, type, ints); };
    const std::string variables = type + " second = y; " + ints + " number = m;\n";
    std::string sum = width == 1 ? "sum" : "";
    for (int i = 0; width > 1 && i < width; ++i)
        sum += (i ? " + sum[" : "sum[") + std::to_string(i) + "]";
    return type + " __attribute__((noinline)) apart(" + type + " x, " + type + " y, " + ints + " m) {\n" + variables +
           "return " + called("x") + ";\n}\n" + "kernel void k(global " + scalar + "* out, global const " + scalar +
           "* in, global const int* whole, int n) {\n" + "size_t i = get_global_id(0);\n" + type +
           " x = in[i], y = in[i + 1];\n" + ints + " m = whole[i];\n" + variables + type + " sum = 0;\n" +
           "for (int k = 0; k < n; ++k) sum += " + called("(x * in[k])") + ";\n" +
           (width > 8 ? "" : "if (in[i] > 0.5f) sum += " + called("sum") + ";\n") +
           (width > 2 ? "" : "sum += apart(sum, y, m);\n") +
           (width > 2 ? ""
                      : "if (in[i + 2] > 3) sum *= 2; else if (in[i] < 3) sum -= x;\nsum += " + called("sum") + ";\n") +
           "out[i] = " + sum + " + " + (width == 1 ? "second" : "second[0]") + ";\n}\n";
}

compiler::Target target() {
    compiler::Target result;
    result.code.local_memory_bytes = 1 << 20;
    result.extensions = {"cl_khr_fp16", "cl_khr_fp64"};
    result.features = {"__opencl_c_fp64", "__opencl_c_int64"};
    return result;
}

std::shared_ptr<const compiler::Module> build(const std::string& source) {
    std::string log;
    compiler::CompileInput input;
    input.source = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" + source;
    input.options = "-cl-std=CL1.2";
    input.target = target();
    const auto object = compiler::compile(input, log);
    if (!object)
        return ADD_FAILURE() << log << source, nullptr;
    compiler::LinkInput objects;
    objects.modules = {*object};
    objects.target = target();
    const auto linked = compiler::link(objects, log);
    if (!linked)
        return ADD_FAILURE() << log, nullptr;
    return *linked;
}

void expect_lanes(const Call& call, const std::string& scalar, int width) {
    const std::string source = source_of(call, scalar, width);
    const auto module = build(source);
    if (!module)
        return;
    const auto& compiled = static_cast<const compiler::CompiledModule&>(*module);
    const auto report = compiler::report_lanes({compiled, compiled.host_bitcode(), compiled.kernels()[0], std::nullopt},
                                               compiler::workgroup::Lanes::wherever_possible);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->scalar_loops, 0U) << scalar << width << ": " << report->reason << "\n" << source;
    EXPECT_GE(report->loops, 1U) << scalar << width << ": " << report->reason << "\n" << source;
    for (const std::string& callee : report->serial_calls)
        ADD_FAILURE() << scalar << width << ": " << callee << " is called for each lane\n" << source;
}

// Known not to have lanes: eight times these is more than is compiled in lanes.
bool is_exempt(const std::string& name, int width) {
    return width >= 8 && (name == "lgamma" || name == "lgamma_r" || name == "tgamma");
}

class MathLanes : public ::testing::TestWithParam<Call> {};

TEST_P(MathLanes, AreKept) {
    for (const int width : {1, 2, 3, 4, 8, 16}) {
        if (is_exempt(GetParam().name, width))
            continue;
        expect_lanes(GetParam(), "float", width);
        if (!GetParam().has_double)
            continue;
        expect_lanes(GetParam(), "double", width);
        expect_lanes(GetParam(), "half", width);
    }
}

INSTANTIATE_TEST_SUITE_P(All, MathLanes, ::testing::ValuesIn(calls()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace polder::math
