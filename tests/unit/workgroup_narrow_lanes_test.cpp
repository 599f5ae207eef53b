// Lanes of 8 and 16 bits: two or four times as many as of 32 bits.
#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// Bytes that are added, and halves of words: as many lanes as fill a register of 512 bits.
constexpr const char* narrow_numbers = R"(
    kernel void bytes(global const uchar* a, global const uchar* b, global uchar* out, int n) {
        int i = get_global_id(0);
        if (i < n) out[i] = add_sat(a[i], b[i]);
    }
    kernel void shorts(global const ushort* a, global const ushort* b, global ushort* out, int n) {
        int i = get_global_id(0);
        if (i < n) out[i] = (a[i] ^ b[i]) + a[i];
    }
    kernel void words(global const uchar* a, global const uchar* b, global float* out, int n) {
        int i = get_global_id(0);
        if (i < n) out[i] = a[i] * (float)b[i];
    })";

TEST(NarrowLanes, OfNumbers_FillARegister) {
    Compiled program(narrow_numbers, processor_with_512_bits);
    ASSERT_EQ(program.prepare("bytes"), "");
    EXPECT_NE(program.optimised().find("<64 x i8> @llvm.masked.load"), std::string::npos) << program.optimised();
    ASSERT_EQ(program.prepare("shorts"), "");
    EXPECT_NE(program.optimised().find("<32 x i16> @llvm.masked.load"), std::string::npos) << program.optimised();
    ASSERT_EQ(program.prepare("words"), "");
    EXPECT_NE(program.optimised().find("<16 x i8> @llvm.masked.load"), std::string::npos) << program.optimised();
}

TEST(NarrowLanes, OfNumbers_AreRightInGroupsOfAllSizes) {
    Compiled program(narrow_numbers);
    constexpr uint64_t items = 300;
    constexpr size_t end = 283;
    std::vector<uint8_t> bytes(items), byte_sums(items), expected_bytes(items);
    std::vector<uint16_t> shorts(items), short_sums(items), expected_shorts(items);
    for (size_t i = 0; i < items; ++i) {
        bytes[i] = static_cast<uint8_t>(i * 7);
        shorts[i] = static_cast<uint16_t>(i * 1001);
        if (i < end) {
            expected_bytes[i] = static_cast<uint8_t>(std::min(2 * int{bytes[i]}, 255));
            expected_shorts[i] = shorts[i];
        }
    }
    for (const uint64_t local : {uint64_t{1}, uint64_t{16}, uint64_t{50}, uint64_t{75}, uint64_t{100}, uint64_t{300}})
        for (const bool is_known : {false, true}) {
            const Range range{1, {items, 1, 1}, {local, 1, 1}};
            const auto arguments = [&](auto& in, auto& out) {
                std::ranges::fill(out, 0);
                return Arguments().add(in.data()).add(in.data()).add(out.data()).add(int{end});
            };
            ASSERT_EQ(program.prepare("bytes", is_known, range.local), "");
            program.run(range, arguments(bytes, byte_sums));
            EXPECT_EQ(byte_sums, expected_bytes) << local;
            ASSERT_EQ(program.prepare("shorts", is_known, range.local), "");
            program.run(range, arguments(shorts, short_sums));
            EXPECT_EQ(short_sums, expected_shorts) << local;
        }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
