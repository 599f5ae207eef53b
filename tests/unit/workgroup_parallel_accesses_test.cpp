// Accesses of one work-item that overlap, in loops over work-items that LLVM makes vectors of (vectorizer/analysis/parallel_accesses.h).
#include "workgroup_harness.h"

#include <cstring>
#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// LLVM stored the three members together, behind the load that has to find the first one's new value.
TEST(ParallelAccesses, OfOtherTypesFindWhatWasStoredBefore) {
    constexpr size_t structures = 77;
    const std::string source = R"(
        typedef ulong __attribute__((may_alias, aligned(4))) Long;
        typedef ushort __attribute__((may_alias)) Short;
        typedef struct { uint a, b, c; } Three;
        kernel void whole(global Three* all) {
            global Three* one = all + get_global_id(0);
            one->a += 1u << 22;
            one->b += (uint)(*(global const Long*)one >> 20);
            one->c += 3;
        }
        kernel void half_of_one(global Three* all) {
            global Three* one = all + get_global_id(0);
            one->a += 1u << 22;
            one->b += ((global const Short*)one)[1];
            one->c += 3;
        })";
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(source, processor);
        for (const std::string kernel : {"whole", "half_of_one"}) {
            for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
                ASSERT_EQ(program.prepare(kernel, false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
                std::vector<uint32_t> words(3 * structures), expected(words.size());
                for (size_t i = 0; i < words.size(); ++i)
                    words[i] = static_cast<uint32_t>(i * 2654435761U);
                for (size_t i = 0; i < words.size(); i += 3) {
                    const uint32_t a = words[i] + (1U << 22), b = words[i + 1];
                    expected[i] = a;
                    expected[i + 1] = b + (kernel == "whole" ? (a >> 20 | b << 12) : a >> 16);
                    expected[i + 2] = words[i + 2] + 3;
                }
                program.run({.global = {structures, 1, 1}, .local = {structures, 1, 1}}, Arguments().add(words.data()));
                EXPECT_EQ(words, expected) << kernel << " " << processor << " " << static_cast<int>(lanes);
            }
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
