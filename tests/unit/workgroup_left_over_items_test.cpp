// Work-items that whole vectors leave over, as a masked vector (left_over_items.h).

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A hash of many rounds, each of which is a multiplication and an exclusive or. `end`: what the loop of the kernel does besides.
std::string hash_of(int rounds, const std::string& end = "") {
    std::string body;
    for (int k = 0; k < rounds; ++k)
        body += "x = (x ^ (x >> " + std::to_string(k % 13 + 3) + ")) * 0x9e3779b1u;";
    return "kernel void k(global const uint* in, global uint* out, int row) {"
           "int i = get_global_id(1) * row + get_global_id(0); uint x = in[i];" +
           body + end + "out[i] = x; }";
}

uint32_t hashed(uint32_t x, int rounds) {
    for (int k = 0; k < rounds; ++k)
        x = (x ^ (x >> (k % 13 + 3))) * 0x9e3779b1U;
    return x;
}

constexpr int rounds = 40;
constexpr const char* masked_store = "call void @llvm.masked.store.v16i32";

TEST(LeftOverItems, OfMuchWork_AreAMaskedVector) {
    Compiled code(hash_of(rounds), processor_with_512_bits);
    ASSERT_EQ(code.prepare("k"), "");
    EXPECT_TRUE(has(code, masked_store));
}

TEST(LeftOverItems, OfLittleWork_RunOneByOne) {
    Compiled code(hash_of(2), processor_with_512_bits);
    ASSERT_EQ(code.prepare("k"), "");
    EXPECT_FALSE(has(code, masked_store));
}

TEST(LeftOverItems, WhereMasksAreDear_RunOneByOne) {
    Compiled code(hash_of(rounds), processor_with_256_bits);
    ASSERT_EQ(code.prepare("k"), "");
    EXPECT_FALSE(has(code, "llvm.masked.store"));
}

// No element behind a row's end is changed: each row has 3 more that no work-item has.
void expect_right(const std::string& source, unsigned vectors, Lanes lanes, const std::string& processor) {
    constexpr size_t rows = 3;
    Compiled code(source, processor);
    code.run_at_once(vectors);
    ASSERT_EQ(code.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
    for (const uint64_t size : {1, 2, 7, 15, 16, 17, 30, 31, 32, 33, 47, 63, 64, 65, 100, 130}) {
        const size_t row = size + 3;
        std::vector<uint32_t> in(rows * row), out(in.size(), 5), expected(in.size(), 5);
        for (size_t i = 0; i < in.size(); ++i) {
            in[i] = static_cast<uint32_t>(3 * i + 1);
            if (i % row < size)
                expected[i] = hashed(in[i], rounds);
        }
        for (const uint64_t local : {size, size % 2 == 0 ? size / 2 : size}) {
            std::ranges::fill(out, 5);
            code.run({2, {size, rows, 1}, {local, 1, 1}},
                     Arguments().add(in.data()).add(out.data()).add(static_cast<int>(row)));
            EXPECT_EQ(out, expected) << size << " in groups of " << local << ", " << vectors << " vectors, "
                                     << processor;
        }
    }
}

TEST(LeftOverItems, OfRowsOfAnyLength_AreRight) {
    for (const char* processor : processors)
        for (const unsigned vectors : {0, 2, 4})
            for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible})
                if (runs_here(processor))
                    expect_right(hash_of(rounds), vectors, lanes, processor);
}

// Work-items are under a mask within the masked vector, too.
TEST(LeftOverItems, WithBranches_AreRight) {
    for (const unsigned vectors : {0, 2})
        for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible})
            expect_right(
                hash_of(
                    rounds,
                    "uint y = x; if (x & 1) { for (uint r = 0; r < x % 5; ++r) y += in[i] * r; if (y == 1) return; }"),
                vectors, lanes, "");
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
