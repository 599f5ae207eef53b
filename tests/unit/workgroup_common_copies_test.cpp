// Copies and fills whose arguments are the same for all work-items, in code whose work-items are lanes.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint32_t copied_items = 48;  // work-items, in groups of 24: whole vectors and a rest

// The work-items whose id is `first` modulo `step` execute the statement.
std::string kernel_with(const std::string& statement) {
    return "kernel void k(global int* out, global int* to, global const int* from, ulong bytes, int step, int first) "
           "{\n"
           "    const int i = get_global_id(0);\n"
           "    if (i % step == first) {\n        " +
           statement +
           "\n        out[i] = i * 3;\n    }\n"
           "}\n";
}

struct Outcome {
    std::vector<int> out = std::vector<int>(copied_items, -1), to = std::vector<int>(32, 7);
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run(Compiled& program, uint64_t bytes, int step, int first) {
    Outcome made;
    std::vector<int> from(32);
    std::iota(from.begin(), from.end(), 100);
    program.run({1, {copied_items, 1, 1}, {24, 1, 1}},
                Arguments().add(made.out.data()).add(made.to.data()).add(from.data()).add(bytes).add(step).add(first));
    return made;
}

// Each with all work-items, with some, with one, and with none.
constexpr std::pair<int, int> steps_and_firsts[] = {{1, 0}, {3, 1}, {48, 21}, {7, 9}};

std::vector<int> ids_of(int step, int first) {
    std::vector<int> ids;
    for (int i = 0; i < static_cast<int>(copied_items); ++i)
        if (i % step == first)
            ids.push_back(i);
    return ids;
}

TEST(CommonCopies, AreExecutedOnceForAllLanes) {
    const auto count_of = [](const char* statement, const char* intrinsic) {
        Compiled program(kernel_with(statement), processor_with_512_bits);
        EXPECT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GT(program.result().lanes.loops, 0U);
        return count(program, intrinsic);
    };
    // In the vector loop, of which LLVM may make two, in the loop over the rest, and the declaration.
    EXPECT_LE(count_of("__builtin_memcpy(to, from, bytes);", "@llvm.memcpy"), 4U);
    EXPECT_LE(count_of("__builtin_memset(to, 9, bytes);", "@llvm.memset"), 4U);
    EXPECT_EQ(count_of("__builtin_memcpy(to, from, bytes);", "%rest"), 0U);
    // A move whose source and target overlap is not the same twice.
    const char* const move = "__builtin_memmove(to + 1, to, bytes);";
    EXPECT_EQ(count_of(move, "@llvm.memmove"), 3U);
    EXPECT_GE(count_of(move, "%rest"), 1U);  // the loop over active lanes
}

TEST(CommonCopies, AreRight) {
    Compiled copy(kernel_with("__builtin_memcpy(to, from, bytes);"));
    Compiled fill(kernel_with("__builtin_memset(to + 2, 9, bytes);"));
    Compiled move(kernel_with("__builtin_memmove(to + 1, to, bytes); to[0] += 1;"));
    for (Compiled* const program : {&copy, &fill, &move})
        ASSERT_EQ(program->prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    for (const auto& [step, first] : steps_and_firsts) {
        Outcome copied, filled;
        for (const int i : ids_of(step, first)) {
            copied.out[i] = filled.out[i] = i * 3;
            std::iota(copied.to.begin(), copied.to.begin() + 11, 100);
            std::fill_n(filled.to.begin() + 2, 11, 0x09090909);
        }
        EXPECT_EQ(run(copy, 44, step, first), copied) << step << " " << first;
        EXPECT_EQ(run(fill, 44, step, first), filled) << step << " " << first;
    }
    // No order of work-items is defined, so one of them.
    Outcome moved;
    moved.to[0] = 8;
    moved.out[21] = 63;
    EXPECT_EQ(run(move, 44, 48, 21), moved);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
