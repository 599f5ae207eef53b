// Kernels that are too long to be compiled in lanes when all functions are inlined: their long functions are called, for all lanes at once.
#include "compiler_support.h"
#include "module/module.h"
#include "targets/host/code_generator.h"

namespace polder::compiler::test {
namespace {

// `calls` calls of a function with `steps` statements; before and behind each the state is in private memory.
std::string long_kernel(int steps, int calls, const std::string& key_type = "uint") {
    std::string source = "void mix(private uint* s, " + key_type + " keys) {\n uint a = s[0], b = s[1];\n uint key = ";
    source += key_type == "uint" ? "keys;\n" : "keys.x ^ keys.y;\n";
    for (int i = 0; i < steps; ++i)
        source +=
            " a = rotate(a + b * key, " + std::to_string(i % 31 + 1) + "u); b ^= a + " + std::to_string(i) + "u;\n";
    source += " s[0] += a; s[1] += b;\n}\nkernel void k(global uint* out, global const uint* in) {\n"
              " const size_t i = get_global_id(0);\n uint s[2] = {in[i], (uint)i};\n";
    for (int i = 0; i < calls; ++i)
        source += " mix(s, (" + key_type + ")(in[i + " + std::to_string(i) + "]));\n if (s[0] & 1) s[1] += 3;\n";
    return source + " out[i] = s[0] ^ s[1];\n}\n";
}

workgroup::LaneReport report_of(const std::string& source) {
    const Outcome built = build(source);
    EXPECT_EQ(built.status, Status::success) << built.log;
    const auto& compiled = static_cast<const CompiledModule&>(*built.module);
    const auto report = report_lanes({compiled, compiled.host_bitcode(), compiled.kernels()[0], std::nullopt, {}},
                                     workgroup::Lanes::where_they_pay);
    EXPECT_TRUE(report.has_value());
    return report.has_value() ? *report : workgroup::LaneReport{};
}

// Both had no lanes before.
TEST(LongFunctions, AreCalledForAllLanes_WhereTheKernelWouldBeTooLong) {
    const workgroup::LaneReport report = report_of(long_kernel(200, 30));
    EXPECT_EQ(report.loops, 1U) << report.reason;
    EXPECT_FALSE(report.is_too_long);
    EXPECT_TRUE(report.serial_calls.empty());
}

// So many instructions that nothing is inlined first.
TEST(LongFunctions, AreCalledForAllLanes_WhereInliningThemTakesLong) {
    const workgroup::LaneReport report = report_of(long_kernel(600, 30));
    EXPECT_EQ(report.loops, 1U) << report.reason;
    EXPECT_TRUE(report.serial_calls.empty());
}

// Vectors as parameters have no vector form. Inlined everywhere, such functions made a kernel without lanes that took four times as long to compile.
TEST(LongFunctions, WithoutVectorForm_StayCallsWhereTheKernelWouldBeTooLong) {
    const workgroup::LaneReport report = report_of(long_kernel(600, 30, "uint2"));
    EXPECT_FALSE(report.is_too_long) << report.reason;
}

}  // namespace
}  // namespace polder::compiler::test
