// Vectors whose elements are taken from another vector at computed places: one permutation for the vectors of all lanes that lie in a register.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint64_t vector_items = 71;  // the last lanes are not full

// out[i] = (x[y.s0 & mask], x[y.s1 & mask], ...). Vectors lie at any element.
std::string shuffle_kernel(const std::string& type, const std::string& index, unsigned from, unsigned to) {
    constexpr const char* digits = "0123456789abcdef";
    const auto of = [](const std::string& element, unsigned count) {
        return "typedef " + element + std::to_string(count) + " " + element + "_" + std::to_string(count) +
               " __attribute__((aligned(sizeof(" + element + "))));\n";
    };
    std::string source = of(type, from) + (from == to ? "" : of(type, to)) +
                         (index == type && from == to ? "" : of(index, to)) + "kernel void k(global const " + type +
                         "_" + std::to_string(from) + "* in, global const " + index + "_" + std::to_string(to) +
                         "* places, global " + type + "_" + std::to_string(to) +
                         "* out) {\n    size_t i = get_global_id(0);\n    " + type + std::to_string(from) +
                         " x = in[i];\n    " + index + std::to_string(to) + " y = places[i] & (" + index + ")" +
                         std::to_string(from - 1) + ";\n    out[i] = (" + type + std::to_string(to) + ")(";
    for (unsigned i = 0; i < to; ++i)
        source += (i == 0 ? "x[y.s" : ", x[y.s") + std::string(1, digits[i]) + "]";
    return source + ");\n}";
}

std::string code_of(const std::string& source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::with_whole_vectors), "");
    return program.optimised();
}

constexpr const char* processor_with_bytes = "icelake-server";

TEST(ShuffledElements, OfLanesSideBySide_AreOnePermutation) {
    const std::string shorts = code_of(shuffle_kernel("short", "short", 8, 8), processor_with_512_bits);
    EXPECT_GT(count(shorts, "call <32 x i16> @llvm.x86.avx512.permvar.hi"), 0U);
    EXPECT_EQ(count(shorts, "select <4 x i1>"), 0U) << "no choices for the first elements, and so on";
    const std::string bytes = code_of(shuffle_kernel("char", "char", 8, 8), processor_with_bytes);
    EXPECT_GT(count(bytes, "call <64 x i8> @llvm.x86.avx512.permvar.qi"), 0U);
}

TEST(ShuffledElements, WithoutWidePermutations_MoveWithinHalvesOfRegisters) {
    const auto calls = [](const char* type, const char* processor, const char* instruction, unsigned elements = 8) {
        return count(code_of(shuffle_kernel(type, type, elements, elements), processor),
                     std::string("@llvm.x86.") + instruction);
    };
    EXPECT_GT(calls("char", "skylake-avx512", "avx2.pshuf.b"), 0U);
    EXPECT_GT(calls("char", processor_with_256_bits, "avx2.pshuf.b"), 0U);
    EXPECT_GT(calls("short", processor_with_256_bits, "avx2.pshuf.b"), 0U);
    EXPECT_GT(calls("int", processor_with_256_bits, "avx.vpermilvar.ps.256", 4), 0U);
    EXPECT_EQ(calls("short", processor_with_256_bits, "avx2.pshuf.b", 16), 0U) << "of two halves";
}

// One instruction for each shuffle without lanes; in lanes of the elements, 15 choices for each of 16.
TEST(ShuffledElements, OfWholeRegisters_AreNotSplit) {
    constexpr const char* source = R"(
kernel void k(global const uchar16* bytes, global const uchar16* places, global uchar16* bytes_out, global const int4* words,
              global const uint4* word_places, global int4* words_out, int rounds) {
    const size_t i = get_global_id(0);
    uchar16 a = bytes[i];
    int4 b = words[i];
    for (int round = 0; round < rounds; ++round) {
        a = shuffle(a, places[i] + (uchar)round) + (uchar)round;
        b = shuffle(b, word_places[i] + (uint)round) + round;
    }
    bytes_out[i] = a;
    words_out[i] = b;
})";
    for (const char* const processor : {processor_with_256_bits, processor_with_512_bits}) {
        Compiled program(source, processor);
        EXPECT_EQ(program.prepare("k"), "");
        EXPECT_EQ(count(program.optimised(), "select <"), 0U) << processor;
    }
}

template <class T, class Index>
void check_shuffles(const std::string& type, const std::string& index) {
    for (const unsigned from : {2U, 4U, 8U, 16U})
        for (const unsigned to : {4U, 8U, 16U})
            for (const char* const processor : {"", "skylake-avx512", processor_with_256_bits}) {
                if (!runs_here(processor))
                    continue;
                Compiled program(shuffle_kernel(type, index, from, to), processor);
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::with_whole_vectors),
                          "");
                std::vector<T> in(vector_items * from), out(vector_items * to);
                std::vector<Index> places(out.size());
                for (size_t i = 0; i < in.size(); ++i)
                    in[i] = static_cast<T>(i * 7 + 3);
                for (size_t i = 0; i < places.size(); ++i)
                    places[i] = static_cast<Index>(i * 2654435761U >> 3);
                program.run({.global = {vector_items, 1, 1}, .local = {16, 1, 1}},
                            Arguments().add(in.data()).add(places.data()).add(out.data()));
                for (size_t i = 0; i < out.size(); ++i) {
                    const size_t place = static_cast<size_t>(places[i]) & (from - 1);
                    ASSERT_EQ(out[i], in[i / to * from + place])
                        << type << from << " to " << to << " on " << processor << ": " << i;
                }
            }
}

TEST(ShuffledElements, HaveTheirElements_Bytes) { check_shuffles<uint8_t, uint8_t>("uchar", "uchar"); }
TEST(ShuffledElements, HaveTheirElements_Shorts) { check_shuffles<int16_t, uint16_t>("short", "ushort"); }
TEST(ShuffledElements, HaveTheirElements_Floats) { check_shuffles<float, uint32_t>("float", "uint"); }
TEST(ShuffledElements, HaveTheirElements_Doubles) { check_shuffles<double, uint64_t>("double", "ulong"); }
TEST(ShuffledElements, HaveTheirElements_PlacesOfAnotherSize) { check_shuffles<int32_t, uint8_t>("int", "uchar"); }

}  // namespace
}  // namespace polder::compiler::workgroup::test
