// Packed structures, as three bytes of a pixel: their index of 32 bits is a small multiple of the work-item's id, which has 64.

#include "workgroup_all_bytes.h"
#include "workgroup_harness.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// `index`: of the first byte, without a closing parenthesis.
std::string pixels(const std::string& type, const std::string& index) {
    const std::string id = type + " i = get_global_id(1) * width + get_global_id(0);\n";
    return "kernel void k(global const uchar* in, global uchar* out, " + type + " width) {\n  const " + id +
           "  out[get_local_id(0)] = in[" + index + ")] + 2 * in[" + index + " + 1)] + 3 * in[" + index + " + 2)];\n}";
}

struct PackedIndex {
    const char* type;
    uint32_t factor;
};

class Packed : public testing::TestWithParam<PackedIndex> {};

TEST_P(Packed, AreLoadedWithoutGathers) {
    const auto [type, factor] = GetParam();
    if (std::string(type) == "uint")
        GTEST_SKIP() << "sums of unsigned numbers may wrap around: each access is checked";
    Compiled program(pixels(type, "(" + std::to_string(factor) + " * i"), processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_GT(program.result().lanes.loops, 0U) << program.result().lanes.reason;
    EXPECT_EQ(program.optimised().find("masked.gather"), std::string::npos) << program.optimised();
}

// The launch's offset moves ids to where their multiples leave the range of 32 bits.
TEST_P(Packed, IndicesThatWrapAround_AreRight) {
    const auto [type, factor] = GetParam();
    const bool is_signed = std::string(type) == "int";
    const AllBytes bytes;
    constexpr uint32_t items = 40;
    Compiled program(pixels("uint", "(" + std::string(type) + ")(" + std::to_string(factor) + " * i"));
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    const uint64_t range = uint64_t{1} << 32;
    for (const uint64_t edge : {uint64_t{0}, range / 2 / factor, range / factor, range, range * 2 / factor})
        for (uint64_t before = 0; before < 44; ++before) {
            const uint64_t offset = edge < before ? before : edge - before;
            std::vector<uint8_t> out(items), expected(items);
            const auto byte = [&](uint32_t at) {
                return is_signed ? bytes.signed_zero()[static_cast<int32_t>(at)] : bytes.unsigned_zero()[at];
            };
            for (uint32_t i = 0; i < items; ++i) {
                const uint32_t at = factor * (static_cast<uint32_t>(offset) + i);
                expected[i] = static_cast<uint8_t>(byte(at) + 2 * byte(at + 1) + 3 * byte(at + 2));
            }
            program.run({1, {items, 1, 1}, {items, 1, 1}, {offset, 0, 0}},
                        Arguments()
                            .add(is_signed ? bytes.signed_zero() : bytes.unsigned_zero())
                            .add(out.data())
                            .add(uint32_t{0}));
            ASSERT_EQ(out, expected) << offset;
        }
}

// Loads of what does not change may be between the stores of a structure.
TEST(PackedStores, OfBytesLookedUpInATable_AreMadeTogether) {
    const std::string source = R"(
        constant uchar table[64] = {7, 1, 5, 2, 9, 3, 8, 4, 6, 11, 15, 12, 19, 13, 18, 14, 16, 21, 25, 22, 29};
        kernel void k(global const uint* in, global uchar* out) {
            const int i = get_global_id(0);
            const uint x = in[i];
            out[4 * i] = table[x & 63];
            out[4 * i + 1] = table[x >> 6 & 63];
            out[4 * i + 2] = table[x >> 12 & 63];
            out[4 * i + 3] = table[x >> 18 & 63];
        })";
    Compiled looked_at(source, processor_with_512_bits);
    ASSERT_EQ(looked_at.prepare("k"), "");
    EXPECT_GT(looked_at.result().lanes.loops, 0U) << looked_at.result().lanes.reason;
    EXPECT_EQ(looked_at.optimised().find("masked.scatter"), std::string::npos) << looked_at.optimised();
    Compiled program(source);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    constexpr uint32_t items = 43;
    constexpr std::array<uint8_t, 64> table{7, 1, 5, 2, 9, 3, 8, 4, 6, 11, 15, 12, 19, 13, 18, 14, 16, 21, 25, 22, 29};
    std::vector<uint32_t> in(items);
    std::vector<uint8_t> out(size_t{4} * items), expected = out;
    for (uint32_t i = 0; i < items; ++i) {
        in[i] = i * 2654435761U;
        for (uint32_t m = 0; m < 4; ++m)
            expected[4 * i + m] = table[in[i] >> (6 * m) & 63];
    }
    program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(in.data()).add(out.data()));
    EXPECT_EQ(out, expected);
}

INSTANTIATE_TEST_SUITE_P(Factors, Packed,
                         testing::Values(PackedIndex{"int", 3}, PackedIndex{"int", 4}, PackedIndex{"uint", 3},
                                         PackedIndex{"uint", 4}));

}  // namespace
}  // namespace polder::compiler::workgroup::test
