// Small constant tables are in registers, where lanes choose their elements by permutations.
#include "workgroup_harness.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* processor_without_bytes = "skylake-avx512";  // permutes shorts, words and longs, but not bytes

std::string table_ir_of(const std::string& source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k"), "");
    return program.optimised();
}

// A table of `count` elements of `type`, in which element i is 7 i + 3 in that type.
std::string table_of(const std::string& type, unsigned count, const std::string& name = "table") {
    std::string text = "constant " + type + " " + name + "[" + std::to_string(count) + "] = {";
    for (unsigned i = 0; i < count; ++i)
        text += "(" + type + ")" + std::to_string(7 * i + 3) + ",";
    return text + "};\n";
}

std::string table_kernel(const std::string& type, unsigned count) {
    return table_of(type, count) + "kernel void k(global const uint* in, global " + type +
           "* out) { size_t i = get_global_id(0); out[i] = table[in[i] % " + std::to_string(count) + "]; }";
}

constexpr const char* one_register = "call <16 x i32> @llvm.x86.avx512.permvar.si.512";
constexpr const char* two_registers = "call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512";
constexpr const char* registers_of_bytes = "call <64 x i8> @llvm.x86.avx512.vpermi2var.qi.512";
constexpr const char* register_of_256_bits = "call <8 x i32> @llvm.x86.avx2.permd";

TEST(ConstantTables, OfOneRegister_AreOnePermutation) {
    const std::string words = table_ir_of(table_kernel("float", 16), processor_with_512_bits);
    EXPECT_GT(count(words, one_register), 0U);
    EXPECT_EQ(count(words, two_registers) + count(words, "@llvm.masked.gather"), 0U);
    const std::string narrow = table_ir_of(table_kernel("int", 8), processor_with_256_bits);
    EXPECT_GT(count(narrow, register_of_256_bits), 0U);
    EXPECT_EQ(count(table_ir_of(table_kernel("int", 16), processor_with_256_bits), register_of_256_bits),
              2 * count(narrow, register_of_256_bits))
        << "two permutations for twice as many elements";
}

TEST(ConstantTables, OfTwoRegisters_AreOnePermutationOfBoth) {
    const std::string words = table_ir_of(table_kernel("uint", 32), processor_with_512_bits);
    EXPECT_GT(count(words, two_registers), 0U);
    EXPECT_EQ(count(words, one_register), 0U);
    EXPECT_EQ(count(table_ir_of(table_kernel("uint", 64), processor_with_512_bits), two_registers),
              2 * count(words, two_registers));
}

TEST(ConstantTables, OfBytes_NeedProcessorsThatPermuteThem) {
    const std::string source = table_kernel("uchar", 256);
    EXPECT_GT(count(table_ir_of(source, processor_with_512_bits), registers_of_bytes), 0U);
    EXPECT_EQ(count(table_ir_of(source, processor_without_bytes), "@llvm.x86.avx512."), 0U);
    // Few bytes are words, which every processor with such registers permutes.
    EXPECT_GT(count(table_ir_of(table_kernel("uchar", 32), processor_without_bytes), two_registers), 0U);
}

TEST(ConstantTables, ThatDoNotFit_AreLoaded) {
    EXPECT_EQ(count(table_ir_of(table_kernel("float", 65), processor_with_512_bits), "x86.avx512.vperm"), 0U);
    EXPECT_EQ(count(table_ir_of(table_kernel("float", 17), processor_with_256_bits), "x86.avx2.perm"), 0U);
    EXPECT_EQ(count(table_ir_of(table_kernel("double", 4), processor_with_256_bits), "x86.avx2.perm"), 0U);
}

TEST(ConstantTables, WhoseRowsLanesRead_AreRows) {
    const std::string source = table_of("float", 16) + R"(
        kernel __attribute__((reqd_work_group_size(16, 1, 1))) void k(global float* out) {
            out[get_global_id(0)] += table[get_local_id(0)];
        })";
    const std::string row = table_ir_of(source, processor_with_512_bits);
    EXPECT_EQ(count(row, "x86.avx512.perm"), 0U);
    EXPECT_EQ(count(row, "@llvm.masked.gather"), 0U);
}

// Nothing is known of the index, so a table of unknown size may be long.
TEST(ConstantTables, InBuffers_AreLoaded) {
    constexpr const char* source = R"(
        kernel void k(global const uint* in, global float* table, global float* out) {
            size_t i = get_global_id(0);
            out[i] = table[in[i]];
        })";
    EXPECT_EQ(count(table_ir_of(source, processor_with_512_bits), "x86.avx512.perm"), 0U);
}

// What is run: on the host's processor, and on one with registers of 256 bits where the host is one.
std::vector<std::string> table_processors() {
    std::vector<std::string> all{""};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        all.emplace_back(processor_with_256_bits);
#endif
    return all;
}

constexpr uint64_t looked_up_items = 203;  // the last vector is not full

std::vector<uint32_t> random_indices() {
    std::vector<uint32_t> in(looked_up_items);
    for (size_t i = 0; i < looked_up_items; ++i)
        in[i] = static_cast<uint32_t>(i * 2654435761U >> 3);
    return in;
}

// The results of the kernel k of `source`: `elements` for each work-item.
template <class T>
std::vector<T> looked_up(const std::string& source, const std::string& processor, size_t elements = 1) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k"), "");
    const std::vector<uint32_t> in = random_indices();
    std::vector<T> out(looked_up_items * elements);
    program.run({.global = {looked_up_items, 1, 1}, .local = {64, 1, 1}}, Arguments().add(in.data()).add(out.data()));
    return out;
}

// Element `index` of table_of().
template <class T>
T table_element(int64_t index) {
    return static_cast<T>(7 * index + 3);
}

// One kernel that looks up in tables of many sizes.
template <class T>
void check_table_sizes(const std::string& type) {
    constexpr std::array<unsigned, 15> sizes{1, 2, 3, 8, 9, 16, 31, 32, 33, 64, 65, 128, 129, 256, 257};
    std::string tables, loads;
    for (const unsigned size : sizes) {
        const std::string text = std::to_string(size);
        tables += table_of(type, size, "table" + text);
        loads += "    *out++ = table" + text + "[in[i] % " + text + "];\n";
    }
    const std::string source = tables + "kernel void k(global const uint* in, global " + type +
                               "* out) {\n    size_t i = get_global_id(0);\n    out += 15 * i;\n" + loads + "}";
    const std::vector<uint32_t> in = random_indices();
    for (const std::string& processor : table_processors()) {
        const std::vector<T> out = looked_up<T>(source, processor, sizes.size());
        for (size_t i = 0; i < looked_up_items * sizes.size(); ++i)
            ASSERT_EQ(out[i], table_element<T>(in[i / sizes.size()] % sizes.at(i % sizes.size())))
                << type << " of " << sizes.at(i % sizes.size()) << " on " << processor << ": " << i / sizes.size();
    }
}

TEST(ConstantTables, HaveTheirElements_Bytes) { check_table_sizes<uint8_t>("uchar"); }
TEST(ConstantTables, HaveTheirElements_Shorts) { check_table_sizes<int16_t>("short"); }
TEST(ConstantTables, HaveTheirElements_Words) { check_table_sizes<float>("float"); }
TEST(ConstantTables, HaveTheirElements_Longs) { check_table_sizes<double>("double"); }

TEST(ConstantTables, MayBeginWithANegativeIndex) {
    const std::string source = table_of("int", 16) + R"(
        kernel void k(global const uint* in, global int* out) {
            size_t i = get_global_id(0);
            int index = (int)(in[i] % 16) - 8;
            out[i] = (table + 8)[index];
        })";
    const std::vector<uint32_t> in = random_indices();
    for (const std::string& processor : table_processors()) {
        const std::vector<int> out = looked_up<int>(source, processor);
        for (size_t i = 0; i < looked_up_items; ++i)
            ASSERT_EQ(out[i], table_element<int>(in[i] % 16)) << i;
    }
}

TEST(ConstantTables, OfStructures_AreOneForEachMember) {
    const std::string source = R"(
        typedef struct { int small; double wide; short other; } Row;
        constant Row rows[4] = {{1, 2, 3}, {10, 20, 30}, {-1, -2, -3}, {7, 8, 9}};
        kernel void k(global const uint* in, global double* out) {
            size_t i = get_global_id(0);
            uint at = in[i] & 3;
            out[i] = rows[at].small * 100.0 + rows[at].wide * 10.0 + rows[at].other;
        })";
    constexpr std::array<double, 4> expected{123, 1230, -123, 789};
    const std::vector<uint32_t> in = random_indices();
    for (const std::string& processor : table_processors()) {
        const std::vector<double> out = looked_up<double>(source, processor);
        for (size_t i = 0; i < looked_up_items; ++i)
            ASSERT_EQ(out[i], expected[in[i] & 3]) << i;
    }
}

// The index counts bytes: a table of bytes that is read as words.
TEST(ConstantTables, AreReadAsOtherTypes) {
    const std::string source = R"(
        constant uchar aligned[64] __attribute__((aligned(64))) = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
        kernel void k(global const uint* in, global uint* out) {
            size_t i = get_global_id(0);
            constant uchar* place = aligned + (in[i] & 60);
            out[i] = *(constant uint*)place;
        })";
    EXPECT_GT(count(table_ir_of(source, processor_with_512_bits), one_register), 0U);
    const std::vector<uint32_t> in = random_indices();
    for (const std::string& processor : table_processors()) {
        const std::vector<uint32_t> out = looked_up<uint32_t>(source, processor);
        for (size_t i = 0; i < looked_up_items; ++i) {
            uint32_t expected = 0;
            for (uint32_t byte = 0; byte < 4; ++byte)
                if (const uint32_t at = (in[i] & 60) + byte; at < 17)
                    expected |= (at + 1) << 8 * byte;
            ASSERT_EQ(out[i], expected) << i;
        }
    }
}

TEST(ConstantTables, InBranchesAndLoops_HaveTheirElements) {
    const std::string source = table_of("int", 32) + R"(
        kernel void k(global const uint* in, global int* out) {
            size_t i = get_global_id(0);
            int sum = 0;
            if (in[i] & 1)
                for (uint j = 0; j < (in[i] & 7); ++j) sum = sum * 3 + table[in[i] >> j & 31];
            out[i] = sum;
        })";
    const std::vector<uint32_t> in = random_indices();
    for (const std::string& processor : table_processors()) {
        const std::vector<int> out = looked_up<int>(source, processor);
        for (size_t i = 0; i < looked_up_items; ++i) {
            int sum = 0;
            for (uint32_t j = 0; (in[i] & 1) != 0 && j < (in[i] & 7); ++j)
                sum = sum * 3 + table_element<int>(in[i] >> j & 31);
            ASSERT_EQ(out[i], sum) << i;
        }
    }
}

// An index of eight bits is extended with its sign.
TEST(ConstantTables, WithNarrowIndices_HaveTheirElements) {
    const std::string source = table_of("short", 16) + R"(
        kernel void k(global const uint* in, global short* out) {
            size_t i = get_global_id(0);
            char index = (char)(in[i] << 4) >> 4;
            out[i] = (table + 8)[index];
        })";
    const std::vector<uint32_t> in = random_indices();
    for (const std::string& processor : table_processors()) {
        const std::vector<int16_t> out = looked_up<int16_t>(source, processor);
        for (size_t i = 0; i < looked_up_items; ++i)
            ASSERT_EQ(out[i], table_element<int16_t>(static_cast<int8_t>(in[i] << 4) / 16 + 8)) << i;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
