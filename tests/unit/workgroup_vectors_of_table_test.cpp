// Vectors of 4, 8 and 16 in the kernel's source whose elements are loaded from a small constant table: permutations, with lanes and without.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr unsigned table_size = 16, elements_max = 16;
constexpr uint64_t vector_items = 71;  // the last lanes are not full

std::string constant_table(const std::string& type) {
    std::string text = "constant " + type + " table[16] = {";
    for (unsigned i = 0; i < table_size; ++i)
        text += std::to_string(3 * i + 5) + ",";
    return text + "};\n";
}

// (table[x.s0], table[x.s1], ...). `backwards`: from the last element of x on.
std::string looked_up_vector(const std::string& type, unsigned elements, bool backwards = false) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text = "(" + type + std::to_string(elements) + ")(";
    for (unsigned i = 0; i < elements; ++i)
        text += (i == 0 ? "table[x.s" : ", table[x.s") + std::string(1, digits[backwards ? elements - 1 - i : i]) + "]";
    return text + ")";
}

// In a loop, so that the table is worth a register. Vectors lie at any element.
std::string vector_kernel(const std::string& type, const std::string& index, unsigned elements,
                          bool backwards = false) {
    const std::string width = std::to_string(elements), vector = type + width, places = index + width;
    return constant_table(type) + "typedef " + vector + " result __attribute__((aligned(sizeof(" + type +
           "))));\ntypedef " + places + " places __attribute__((aligned(sizeof(" + index +
           "))));\nkernel void k(global const places* in, global result* out, int n) {\n" +
           "    size_t i = get_global_id(0);\n    " + vector +
           " sum = 0;\n    for (int round = 0; round < n; ++round) {\n        " + places + " x = (in[i] >> (" + index +
           ")round) & (" + index + ")15;\n        sum += " + looked_up_vector(type, elements, backwards) +
           ";\n    }\n    out[i] = sum;\n}";
}

std::string code_of(const std::string& source, const char* processor, Lanes lanes = Lanes::where_they_pay) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
    return program.optimised();
}

size_t permutations_in(const std::string& code) {
    return count(code, "@llvm.x86.avx512.permvar") + count(code, "@llvm.x86.avx512.vpermi2var") -
           count(code, "declare <16 x i32> @llvm.x86.avx512") - count(code, "declare <8 x i64> @llvm.x86.avx512");
}

TEST(VectorsOfTable, WithoutLanes_ArePermutations) {
    const std::string words = code_of(vector_kernel("float", "int", 16), processor_with_512_bits, Lanes::none);
    EXPECT_EQ(permutations_in(words), 1U);
    EXPECT_EQ(count(words, "extractelement"), 0U);
    const std::string doubles = code_of(vector_kernel("double", "long", 16), processor_with_512_bits, Lanes::none);
    EXPECT_EQ(permutations_in(doubles), 2U) << "one for each register";
    EXPECT_EQ(
        count(code_of(vector_kernel("float", "int", 16, true), processor_with_512_bits, Lanes::none), "extractelement"),
        0U)
        << "indices are moved at once";
}

// The indices of two work-items' vectors of eight fill a register.
TEST(VectorsOfTable, SideBySideInLanes_AreOnePermutation) {
    Compiled program(vector_kernel("float", "int", 8), processor_with_512_bits);
    // No work-items are left over.
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::with_whole_vectors), "");
    const std::string code = program.optimised();
    EXPECT_GT(permutations_in(code), 0U);
    EXPECT_EQ(count(code, "extractelement <16 x i32>"), 0U);
    EXPECT_EQ(count(code, "<2 x i32>"), 0U) << "the first indices of both, and so on";
}

TEST(VectorsOfTable, WithOtherElements_AreLoaded) {
    const std::string source = constant_table("float") + R"(
        constant float other[16] = {1, 2, 3};
        kernel void k(global const int4* in, global float4* out) {
            size_t i = get_global_id(0);
            int4 x = in[i] & 15;
            out[i] = (float4)(table[x.s0], other[x.s1], table[x.s2], table[x.s3]);
        })";
    EXPECT_EQ(permutations_in(code_of(source, processor_with_512_bits, Lanes::none)), 0U);
}

template <class T, class Index>
void check_vectors(const std::string& type, const std::string& index) {
    constexpr int rounds = 7;
    for (const unsigned elements : {4U, 8U, elements_max})
        for (const Lanes lanes : {Lanes::with_whole_vectors, Lanes::none})
            for (const char* const processor : {"", "skylake-avx512", processor_with_256_bits}) {
                const bool backwards = elements == 8;
                if (!runs_here(processor))
                    continue;
                Compiled program(vector_kernel(type, index, elements, backwards), processor);
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
                std::vector<Index> in(vector_items * elements);
                for (size_t i = 0; i < in.size(); ++i)
                    in[i] = static_cast<Index>(i * 2654435761U >> 3);
                std::vector<T> out(in.size());
                program.run({.global = {vector_items, 1, 1}, .local = {16, 1, 1}},
                            Arguments().add(in.data()).add(out.data()).add(rounds));
                for (size_t i = 0; i < out.size(); ++i) {
                    const size_t element = i % elements;
                    const Index from = in[backwards ? i - element + elements - 1 - element : i];
                    T sum = 0;
                    for (int round = 0; round < rounds; ++round)
                        sum += static_cast<T>(3 * ((from >> round) & 15) + 5);
                    ASSERT_EQ(out[i], sum) << type << elements << " on " << processor << ": " << i;
                }
            }
}

TEST(VectorsOfTable, HaveTheirElements_Words) { check_vectors<float, int32_t>("float", "int"); }
TEST(VectorsOfTable, HaveTheirElements_Longs) { check_vectors<double, int64_t>("double", "long"); }
TEST(VectorsOfTable, HaveTheirElements_NarrowIndices) { check_vectors<int32_t, uint8_t>("int", "uchar"); }
TEST(VectorsOfTable, HaveTheirElements_Bytes) { check_vectors<uint8_t, int32_t>("uchar", "int"); }

}  // namespace
}  // namespace polder::compiler::workgroup::test
