// Ids that LLVM freezes, because they decide about a branch that it moves out of a loop.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// The longest match within the bytes before, as in compression.
constexpr const char* longest_match = R"(
    kernel void k(global const uchar* bytes, global int* best, int count, int window) {
        const int i = get_global_id(0);
        int longest = 0, at = 0;
        for (int offset = 1; offset <= window && offset <= i; ++offset) {
            int length = 0;
            while (length < 8 && i + length < count && bytes[i + length] == bytes[i + length - offset]) ++length;
            if (length > longest) { longest = length; at = offset; }
        }
        best[i] = longest << 8 | at;
    })";

TEST(FrozenIds, KeepTheirSteps) {
    Compiled program(longest_match, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
}

TEST(FrozenIds, LeaveResultsAsTheyAre) {
    constexpr int count = 256;
    std::vector<uint8_t> bytes(count);
    for (int i = 0; i < count; ++i)
        bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(i * i / 7 % 3);
    const auto at = [&](int i) { return bytes[static_cast<size_t>(i)]; };
    for (const std::string processor : {"", "haswell", "x86-64-v2"}) {
        if (processor == "haswell" && __builtin_cpu_supports("avx2") == 0)
            continue;
        Compiled program(longest_match, processor);
        for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const int window : {0, 1, 40, 1000}) {
                std::vector<int> best(count), expected(count);
                for (int i = 0; i < count; ++i) {
                    int longest = 0, place = 0;
                    for (int offset = 1; offset <= window && offset <= i; ++offset) {
                        int length = 0;
                        while (length < 8 && i + length < count && at(i + length) == at(i + length - offset))
                            ++length;
                        if (length > longest) {
                            longest = length;
                            place = offset;
                        }
                    }
                    expected[static_cast<size_t>(i)] = longest << 8 | place;
                }
                program.run({1, {count, 1, 1}, {32, 1, 1}},
                            Arguments().add(bytes.data()).add(best.data()).add(count).add(window));
                EXPECT_EQ(best, expected) << processor << ' ' << window;
            }
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
