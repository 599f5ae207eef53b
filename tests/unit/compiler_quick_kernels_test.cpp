// Which kernels may have quick code, and how much work their launches have.
#include "compiler_support.h"

namespace polder::compiler::test {
namespace {

KernelInfo info(const std::string& body, const std::string& options = "",
                const std::string& parameters = "global int* p, global float* f, int n") {
    const Outcome built =
        build("kernel void k(" + parameters + ") { const int id = get_global_id(0); " + body + " }", options);
    EXPECT_NE(built.module, nullptr) << built.log;
    return built.module == nullptr ? KernelInfo{} : kernel_of(built, "k");
}

TEST(QuickKernels, WorkIsTheNumberOfInstructions) {
    const uint64_t one = info("p[id] = id;").quick_work;
    EXPECT_GT(one, 2U);
    EXPECT_LT(one, 12U);
    EXPECT_GT(info("p[id] = p[id] * n + (p[id] >> 3) + 7;").quick_work, one);
}

TEST(QuickKernels, LoopsCountTheirRounds) {
    const KernelInfo constant = info("for (int i = 0; i < 100; ++i) p[id] += i * p[i];");
    EXPECT_GT(constant.quick_work, 500U);
    EXPECT_LT(constant.quick_work, 3000U);
    EXPECT_TRUE(constant.quick_factors.empty());
    EXPECT_GT(info("for (int i = 0; i < 10; ++i) for (uint k = 0; k < 10; k += 1) p[id] += i * p[k];").quick_work,
              500U);
    EXPECT_GT(info("for (int i = get_local_id(0); i < 256; i += get_local_size(0)) p[i] = n;").quick_work, 1000U);
}

TEST(QuickKernels, LoopsUpToAnArgumentAreMultipliedByItsValue) {
    EXPECT_EQ(info("for (int i = 0; i < n; ++i) p[id] += i;").quick_factors, std::vector<uint32_t>{2});
    EXPECT_EQ(info("for (int i = 0; i < n; ++i) p[id] += i; for (int i = 0; i < n; ++i) p[id] *= i;").quick_factors,
              std::vector<uint32_t>{2});
    EXPECT_EQ(info("for (int i = 0; i < n; ++i) for (int k = 0; k < n; ++k) p[id] += i * k;").quick_factors,
              (std::vector<uint32_t>{2, 2}));
    EXPECT_EQ(info("for (size_t i = 0; i < n; ++i) p[id] += i;", "", "global int* p, ulong n").quick_factors,
              std::vector<uint32_t>{1});
}

TEST(QuickKernels, LoopsWithoutALimitHaveNoQuickCode) {
    for (const char* body :
         {"while (p[id] < n) p[id]++;", "for (int i = 0; i < p[1]; ++i) p[id] += i;",
          "for (int i = n; i < 10; ++i) p[id] += i;", "for (int i = 0; i < 10; i += n) p[id] += i;",
          "for (int i = 0; i < 10; i += p[i]) p[id] += i;", "for (uchar i = 0; i < 300; ++i) p[id] += i;",
          "for (uint i = 0; i < 10; i += 0xfffffff0) p[id] += i;", "for (int i = 0; i < 1 << 30; ++i) p[id] += i;",
          "for (int i = 0; i < 10; ++i) if (p[i] == 3) --i;", "for (int i = 0; i < 10;) if (p[i]) ++i;"})
        EXPECT_EQ(info(body).quick_work, 0U) << body;
}

TEST(QuickKernels, ResultsThatCompilationMayChangeHaveNoQuickCode) {
    EXPECT_GT(info("f[id] = f[id] * f[n] + f[3];").quick_work, 0U);
    EXPECT_GT(info("f[id] = sqrt(f[id]) / f[n];").quick_work, 0U);
    EXPECT_EQ(info("f[id] = f[id] * f[n] + f[3];", "-cl-fast-relaxed-math").quick_work, 0U);
    EXPECT_EQ(info("f[id] = fmin(f[id], f[n]);").quick_work, 0U);
    EXPECT_EQ(info("printf(\"%d\", n);").quick_work, 0U);
    EXPECT_EQ(info("p[id] = sub_group_reduce_add(n);", "-cl-std=CL3.0").quick_work, 0U);
    EXPECT_EQ(info("p[id] = work_group_reduce_add(n);", "-cl-std=CL3.0").quick_work, 0U);
}

TEST(QuickKernels, CalledFunctionsCount) {
    const Outcome built = build("void many(global int* p) { for (int i = 0; i < 100; ++i) p[i] += i; }"
                                "void unknown(global int* p, int n) { for (int i = 0; i < n; ++i) p[i] += i; }"
                                "kernel void once(global int* p) { many(p); }"
                                "kernel void twice(global int* p) { many(p); many(p + 1); }"
                                "kernel void never(global int* p, int n) { unknown(p, p[n]); }");
    ASSERT_NE(built.module, nullptr) << built.log;
    EXPECT_GT(kernel_of(built, "once").quick_work, 400U);
    EXPECT_GT(kernel_of(built, "twice").quick_work, 2 * kernel_of(built, "once").quick_work - 20);
    EXPECT_EQ(kernel_of(built, "never").quick_work, 0U);
}

}  // namespace
}  // namespace polder::compiler::test
