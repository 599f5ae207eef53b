// Modules: what is refused, and with which words; variables; calls; the grid.
#include "interpreted.h"

#include <array>

namespace polder::ptx::test {
namespace {

TEST(PtxModule, WhatIsNotUnderstoodIsNamed) {
    EXPECT_NE(refusal(kernel("    mbarrier.init.b64 [%rd0], 1;\n    ret;\n"))
                  .find("unsupported instruction \"mbarrier.init.b64\""),
              std::string::npos);
    EXPECT_NE(refusal(kernel("    add.strange.s32 %r1, %r2, %r3;\n")).find("\"add.strange.s32\""), std::string::npos);
    EXPECT_NE(refusal(kernel("    add.s64 %r1, %r2, %r3;\n")).find("a register of another type"), std::string::npos);
    EXPECT_NE(refusal(kernel("    add.s32 %r1, %r2;\n")).find("unsupported"), std::string::npos);
    EXPECT_NE(refusal(kernel("    bra.uni NOWHERE;\n")).find("unknown label NOWHERE"), std::string::npos);
    EXPECT_NE(refusal(kernel("    mov.b64 %rd1, nothing;\n")).find("unknown name nothing"), std::string::npos);
    EXPECT_NE(refusal(kernel("    mov.u32 %r1, %tid.w;\n")).find("unknown register %tid.w"), std::string::npos);
    EXPECT_NE(refusal(kernel("    call.uni f;\n")).find("unknown function f"), std::string::npos);
    EXPECT_NE(refusal(kernel("    call.uni f;\n", ".extern .func f();\n")).find("unresolved extern function f"),
              std::string::npos);
    EXPECT_NE(refusal(".entry k() { ret;").find("ends within a function"), std::string::npos);
    EXPECT_NE(refusal("nonsense").find("line 4: unknown directive \"nonsense\""), std::string::npos);
    EXPECT_NE(refusal(kernel("    cvt.f16.f32 %rs1, %r1;\n")).find("cvt.f16.f32"), std::string::npos);
    EXPECT_NE(refusal(kernel("    st.param.b64 [memory], %rd1;\n")).find("a store to a parameter"), std::string::npos);
    std::string log;
    EXPECT_EQ(Module::load(".version 8.0\n.target sm_100\n.address_size 64\n", 90, log), nullptr);
    EXPECT_NE(log.find("sm_100 on sm_90"), std::string::npos);
}

TEST(PtxModule, VariablesAreInitialized) {
    const auto module = loaded(R"(
.global .align 4 .b32 numbers[4] = {1, -2, 3};
.const .align 8 .b64 where = generic(numbers)+8;
.global .align 8 .u64 to_function = f;
.global .align 1 .b8 bytes[8] = {0xFF(numbers), 0xFF00(numbers), 65, 66};
.global .align 4 .f32 one = 0f3F800000;
.func f() { ret; }
)" + kernel(R"(
    ld.const.b64 %rd1, [where];
    ld.global.b32 %r1, [%rd1];
    st.global.b32 [%rd0], %r1;
    ld.global.b32 %r2, [numbers+4];
    st.global.b32 [%rd0+4], %r2;
    mov.b64 %rd2, numbers;
    cvt.u16.u64 %rs1, %rd2;
    ld.global.b16 %rs2, [bytes];
    setp.eq.b16 %p1, %rs1, %rs2;
    selp.b32 %r3, 1, 0, %p1;
    st.global.b32 [%rd0+8], %r3;
    ld.global.b32 %r4, [one];
    st.global.b32 [%rd0+12], %r4;
    ret;
)"));
    ASSERT_NE(module, nullptr);
    std::array<uint64_t, 2> memory{};
    const auto outcome = run(*module, memory);
    EXPECT_EQ(outcome.fault, Fault::none) << outcome.what;
    EXPECT_EQ(memory[0], uint64_t{0xfffffffe} << 32 | 3);
    EXPECT_EQ(memory[1], uint64_t{0x3f800000} << 32 | 1);
    const auto numbers = module->global("numbers");
    ASSERT_TRUE(numbers.has_value());
    EXPECT_EQ(numbers->bytes, 16u);
    EXPECT_FALSE(module->global("nothing").has_value());
}

TEST(PtxModule, ConstantsAndWhatLiesBehindAVariableAreNotWritten) {
    const auto module = loaded(".const .align 4 .b32 fixed = 1;\n.global .align 4 .b32 one;\n" + kernel(R"(
    mov.b64 %rd1, fixed;
    mov.b64 %rd2, one;
    ld.global.b32 %r1, [%rd0];
    setp.eq.b32 %p0, %r1, 0;
    @%p0 bra CONSTANT;
    st.global.b32 [%rd2], 5;
    st.global.b32 [%rd2+4], 5;
    ret;
CONSTANT:
    st.global.b32 [%rd1], 5;
    ret;
)"));
    ASSERT_NE(module, nullptr);
    for (const uint64_t which : {0u, 1u}) {
        std::array<uint64_t, 1> memory{which};
        EXPECT_EQ(run(*module, memory).fault, Fault::illegal_address) << which;
    }
}

const std::string functions = R"(
.func (.param .b32 result) plus(.param .b32 x, .param .align 16 .b8 pair[16])
{
    .reg .b32 %r<4>;
    ld.param.b32 %r0, [x];
    ld.param.b32 %r1, [pair+8];
    add.s32 %r2, %r0, %r1;
    st.param.b32 [result], %r2;
    ret;
}
.func (.param .b32 result) sum(.param .b32 n)
{
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    .local .align 4 .b8 depot[8];
    ld.param.b32 %r0, [n];
    st.local.b32 [depot+4], %r0;
    mov.b32 %r1, 0;
    setp.eq.b32 %p0, %r0, 0;
    @%p0 bra DONE;
    sub.s32 %r2, %r0, 1;
    { // callseq
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], %r2;
    call.uni (retval0), sum, (param0);
    ld.param.b32 %r1, [retval0];
    }
DONE:
    ld.local.b32 %r0, [depot+4];
    add.s32 %r1, %r1, %r0;
    st.param.b32 [result], %r1;
    ret;
}
)";

TEST(PtxModule, CallsPassParametersAndResults) {
    std::array<uint64_t, 2> memory{};
    run_threads(kernel(R"(
    {
    .param .b32 param0;
    .param .align 16 .b8 param1[16];
    .param .b32 retval0;
    st.param.b32 [param0], 40;
    st.param.v2.b64 [param1], {0, 2};
    call.uni (retval0), plus, (param0, param1);
    ld.param.b32 %r1, [retval0];
    }
    st.global.b32 [%rd0], %r1;
    {
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], 100;
    call.uni (retval0), sum, (param0);
    ld.param.b32 %r1, [retval0];
    }
    st.global.b32 [%rd0+8], %r1;
    ret;
)",
                       functions),
                memory, 1);
    EXPECT_EQ(memory[0], 42u);
    EXPECT_EQ(memory[1], 5050u);
    EXPECT_NE(
        refusal(kernel("    .param .b64 param0;\n    .param .b32 retval0;\n    call.uni (retval0), sum, (param0);\n",
                       functions))
            .find("another prototype than that of sum"),
        std::string::npos);
}

TEST(PtxModule, FunctionsAreCalledThroughAddresses) {
    const std::string body = kernel(R"(
    mov.b64 %rd1, sum;
    ld.global.b64 %rd2, [%rd0];
    add.s64 %rd1, %rd1, %rd2;
    prototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);
    {
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], 4;
    call (retval0), %rd1, (param0), prototype_0;
    ld.param.b32 %r1, [retval0];
    }
    st.global.b32 [%rd0], %r1;
    ret;
)",
                                    functions);
    std::array<uint64_t, 1> memory{};
    run_threads(body, memory, 1);
    EXPECT_EQ(memory[0], 10u);
    memory[0] = 8;
    EXPECT_EQ(run(*loaded(body), memory).fault, Fault::invalid_pc);
}

TEST(PtxModule, ATooDeepRecursionIsReported) {
    std::array<uint64_t, 1> memory{};
    const auto outcome = run(*loaded(kernel(R"(
    {
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], 1000000;
    call.uni (retval0), sum, (param0);
    }
    ret;
)",
                                            functions)),
                             memory);
    EXPECT_EQ(outcome.fault, Fault::illegal_address);
    EXPECT_NE(outcome.what.find("the stack of sum"), std::string::npos) << outcome.what;
}

TEST(PtxModule, JumpsThroughTables) {
    std::array<uint64_t, 2> memory{};
    const std::string body = kernel(R"(
    ld.global.b32 %r1, [%rd0];
TABLE: .branchtargets FIRST, SECOND, THIRD;
    brx.idx %r1, TABLE;
FIRST:
    mov.b32 %r2, 10;
    bra.uni END;
SECOND:
    mov.b32 %r2, 20;
    bra.uni END;
THIRD:
    mov.b32 %r2, 30;
END:
    st.global.b32 [%rd0+8], %r2;
    ret;
)");
    for (const auto& [index, expected] : {std::pair{0u, 10u}, {1u, 20u}, {2u, 30u}}) {
        memory = {index, 0};
        run_threads(body, memory, 1);
        EXPECT_EQ(memory[1], expected);
    }
    memory = {3, 0};
    EXPECT_EQ(run(*loaded(body), memory).fault, Fault::invalid_pc);
}

TEST(PtxModule, ThreadsAndBlocksAreNumbered) {
    std::array<uint64_t, 48> memory{};
    const auto module = loaded(kernel(R"(
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    mov.u32 %r5, %ctaid.x;
    mov.u32 %r6, %ctaid.z;
    mov.u32 %r7, %nctaid.x;
    mad.lo.s32 %r8, %r6, %r7, %r5;
    mad.lo.s32 %r9, %r8, 12, %r4;
    mul.wide.u32 %rd1, %r9, 8;
    add.s64 %rd1, %rd0, %rd1;
    mov.b64 %rd2, {%r4, %r8};
    st.global.b64 [%rd1], %rd2;
    mov.b64 {%r10, %r11}, %rd2;
    ret;
)"));
    ASSERT_NE(module, nullptr);
    const auto outcome = run(*module, memory, {{2, 1, 2}, {4, 3, 1}, 0});
    EXPECT_EQ(outcome.fault, Fault::none) << outcome.what;
    for (uint64_t i = 0; i < memory.size(); ++i)
        EXPECT_EQ(memory[i], (i / 12) << 32 | i % 12) << i;
}

TEST(PtxModule, ParametersHaveAddresses) {
    const auto module = loaded(R"(
.visible .entry k(.param .align 16 .b8 all[32])
{
    .reg .b64 %rd<8>;
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    mov.b64 %rd1, all;
    cvta.param.u64 %rd2, %rd1;
    ld.b64 %rd3, [%rd2];
    ld.param.b64 %rd4, [%rd1+8];
    st.global.b64 [%rd3], %rd4;
    isspacep.global %p0, %rd2;
    selp.b32 %r0, 1, 0, %p0;
    st.global.b32 [%rd3+8], %r0;
    ret;
}
)");
    ASSERT_NE(module, nullptr);
    std::array<uint64_t, 2> memory{0, 7};
    const auto begin = reinterpret_cast<uintptr_t>(memory.data());
    const std::array<uint64_t, 4> parameters{begin, 77, 0, 0};
    const auto outcome =
        module->run(*module->kernel("k"), {}, std::as_bytes(std::span(parameters)), {{begin, begin + 16}});
    EXPECT_EQ(outcome.fault, Fault::none) << outcome.what;
    EXPECT_EQ(memory[0], 77u);
    EXPECT_EQ(memory[1], 0u);
}

}  // namespace
}  // namespace polder::ptx::test
