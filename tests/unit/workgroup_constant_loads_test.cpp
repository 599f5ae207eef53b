// Loads from __constant memory: no store of the kernel changes it, so each element is loaded once, before the loops.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
#include <string>

namespace polder::compiler::workgroup::test {
namespace {

// How often a kernel loads the same element of memory of `kind`, before and behind a store to a buffer that may be any but that one.
size_t loads_of(const std::string& kind) {
    Compiled code("kernel void k(global float* out, " + kind + R"( float* weights, int w) {
                       const int x = get_global_id(0);
                       out[x] = weights[3] + 1;
                       out[x + w] = weights[3] * 2;
                   })",
                  processor_with_512_bits);
    EXPECT_EQ(code.prepare("k", true, {1, 1, 1}), "");
    return count(code, "load float") + count(code, "load volatile float");
}

TEST(ConstantLoads, BehindAStore_AreNotRepeated) { EXPECT_EQ(loads_of("constant"), 1U); }

TEST(ConstantLoads, ThatAreVolatileOrGlobal_AreRepeated) {
    for (const char* kind : {"volatile constant", "global const"})
        EXPECT_EQ(loads_of(kind), 2U) << kind;
}

// A loop of the kernel that stores. It uses each of `number` elements of constant memory `uses` times.
std::string filter_of(unsigned number, unsigned uses = 1) {
    std::string sums, results;
    for (unsigned use = 0; use < uses; ++use) {
        const std::string sum = "s" + std::to_string(use);
        sums += "        float " + sum + " = 0;\n";
        results += "        out[i * 16 + x + " + std::to_string(use) + " * 16 * n] = " + sum + ";\n";
    }
    std::string terms;
    for (unsigned use = 0; use < uses; ++use)
        terms += " s" + std::to_string(use) + " += weights[j] * in[i * 16 + j + x + " + std::to_string(use) + "];";
    return "kernel void k(global float* out, global const float* in, constant float* weights, int n) {\n"
           "    const int x = get_local_id(0);\n    for (int i = 0; i < n; ++i) {\n" +
           sums + "        #pragma unroll\n        for (int j = 0; j < " + std::to_string(number) + "; ++j) {" + terms +
           " }\n" + results + "    }\n}\n";
}

// Elements that do not fit into registers are loaded where they are used.
TEST(ConstantLoads, OfAFilter_AreBeforeTheLoopWhereTheyFitIntoRegisters) {
    struct Case {
        const char* processor;
        unsigned number, uses;
        bool are_before;
    };
    for (const Case& test : {Case{processor_with_512_bits, 17, 1, true}, Case{processor_with_512_bits, 40, 1, false},
                             Case{processor_with_512_bits, 17, 2, true}, Case{processor_with_512_bits, 40, 2, false},
                             Case{processor_with_256_bits, 9, 2, true}, Case{processor_with_256_bits, 17, 2, false}}) {
        Compiled code(filter_of(test.number, test.uses), test.processor);
        ASSERT_EQ(code.prepare("k", true, {16, 1, 1}, WorkGroupOptions::Ends::whole), "");
        const std::string& text = code.optimised();
        const size_t last_load = text.rfind("load float,"), first_sum = text.find("fmul <");
        ASSERT_NE(last_load, std::string::npos) << text;
        ASSERT_NE(first_sum, std::string::npos) << text;
        EXPECT_EQ(last_load < first_sum, test.are_before)
            << test.number << ", " << test.uses << " times, on " << test.processor << ":\n"
            << text;
    }
}

TEST(ConstantLoads, OfAFilter_AreRight) {
    constexpr int rounds = 5;
    for (const auto& [number, uses] : {std::pair{3U, 1U}, {17U, 1U}, {40U, 1U}, {17U, 2U}, {40U, 2U}}) {
        std::vector<float> in(16 * rounds + number + uses), weights(number), out(size_t{16} * rounds * uses), expected;
        std::iota(in.begin(), in.end(), 1.0F);
        std::iota(weights.begin(), weights.end(), -2.0F);
        for (size_t use = 0; use < uses; ++use)
            for (size_t i = 0; i < size_t{16} * rounds; ++i)
                expected.push_back(std::inner_product(weights.begin(), weights.end(),
                                                      in.begin() + static_cast<ptrdiff_t>(i + use), 0.0F));
        Compiled program(filter_of(number, uses));
        for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", true, {16, 1, 1}, WorkGroupOptions::Ends::whole, lanes), "");
            std::ranges::fill(out, 0.0F);
            program.run({1, {16, 1, 1}, {16, 1, 1}},
                        Arguments().add(out.data()).add(in.data()).add(weights.data()).add(int{rounds}));
            EXPECT_EQ(out, expected);
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
