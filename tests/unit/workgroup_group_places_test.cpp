// Places that kernels compute from the group's number and its size, which LLVM extends to 64 bits by shifts.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <map>
#include <sys/mman.h>

namespace polder::compiler::workgroup::test {
namespace {

// The place that programs for GPUs compute: group * size + local id, as an int.
const std::string in_groups = R"(
    kernel void k(global ushort* out) {
        const int item = get_local_id(0), at = get_group_id(0) * SIZE + item;
        out += at;
        out[0] = out[0] + 1;
    })";

TEST(GroupPlaces, AreKnownBeforeTheLoop) {
    for (const char* size : {"64", "0x7ffffff8ul"}) {
        Compiled program("#define SIZE " + std::string(size) + "\n" + in_groups, processor_with_256_bits);
        ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
        EXPECT_EQ(program.result().lanes.loops, 1U);
        EXPECT_FALSE(has(program, "apart")) << program.optimised();
    }
}

// Places from 2^31 on are negative as ints: those of whole groups, and of a part of group 1.
TEST(GroupPlaces, MayWrapAround) {
    constexpr size_t half = size_t{1} << 31, bytes = 2 * half * sizeof(uint16_t);
    constexpr uint64_t groups = 4, items = 64;
    for (const uint64_t size : {0x40000000UL, 0x7ffffff8UL}) {
        Compiled program("#define SIZE " + std::to_string(size) + "ul\n" + in_groups);
        ASSERT_EQ(program.prepare("k", true, {items, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible),
                  "");
        auto* const memory = static_cast<uint16_t*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        ASSERT_NE(memory, MAP_FAILED);
        uint16_t* const middle = memory + half;
        program.run({1, {groups * items, 1, 1}, {items, 1, 1}}, Arguments().add(middle));
        std::map<int32_t, int> expected;
        for (uint64_t group = 0; group < groups; ++group)
            for (uint64_t item = 0; item < items; ++item)
                ++expected[static_cast<int32_t>(group * size + item)];
        for (const auto& [place, times] : expected)
            EXPECT_EQ(middle[place], times) << size << ' ' << place;
        munmap(memory, bytes);
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
