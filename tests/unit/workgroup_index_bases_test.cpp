// Indices of 32 bits that differ by constants (index_bases.h): one check before the loop, and addresses without extensions inside.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <sys/mman.h>

namespace polder::compiler::workgroup::test {
namespace {

// The first loop with lanes; empty when there is none.
std::string lanes_of(const Compiled& program) {
    const std::string& text = program.optimised();
    const size_t begin = std::min(text.find("\nitems.x.vector:"), text.find("\nitems.x.vector.us:"));
    return begin == std::string::npos ? "" : text.substr(begin, text.find("\nvector.done", begin) - begin);
}

TEST(IndexBases, OfTheNextElement_AreKnownBeforeTheLoop) {
    Compiled program(R"(
        kernel void k(global const float* in, global float* out, int n) {
            const int i = get_global_id(0);
            if (i < n)
                out[i] = in[i - 1] + in[i] + in[i + 1] + in[i + 2];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    EXPECT_FALSE(has(program, "apart")) << program.optimised();
}

TEST(IndexBases, OfAStencil_AreNotExtendedInTheLoop) {
    Compiled program(R"(
        kernel void k(global const float* in, global float* out, int n) {
            const int x = get_global_id(0), y = get_global_id(1);
            if (x > 0 && x < n - 1)
                out[y * n + x] = in[y * n + (x - 1)] + in[y * n + x] + in[y * n + (x + 1)] + in[(y + 1) * n + x];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    ASSERT_NE(lanes_of(program), "") << program.optimised();
    EXPECT_EQ(count(lanes_of(program), "sext i32"), 0U) << lanes_of(program);
}

// As LLVM writes `size - 1 - i`: the complement of the index plus the size.
TEST(IndexBases, OfRowsBackwards_AreKnownBeforeTheLoop) {
    for (const char* index : {"size - (uint)get_global_id(0) - 1", "size - (uint)get_global_id(0)"}) {
        Compiled program(
            "kernel void k(global float* a, uint size) { const uint i = get_global_id(0); const uint j = " +
                std::string{index} + "; const float t = a[i]; a[i] = a[j] * 2; a[j] = t; }",
            processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << index << program.result().lanes.reason;
        EXPECT_FALSE(has(program, "gather") || has(program, "scatter") || has(program, "apart")) << program.optimised();
    }
}

// Random numbers begin with an id plus a seed, which is any number of 32 bits. No address depends on the sum, so nothing is checked before the
// loop, and no loop without lanes runs for seeds that are large.
TEST(IndexBases, OfRandomNumbers_AreNotChecked) {
    Compiled program(R"(
        kernel void k(global float* out, uint seed, int n) {
            const size_t i = get_global_id(0);
            uint s = seed + i, t = ((uint)i << 4) + 0xa341316c, u = seed + i + 0x9e3779b9;
            for (int round = 0; round < n; ++round) {
                s ^= s << 13;
                s ^= s >> 17;
                s ^= s << 5;
                t += ((s >> 5) + 0xc8013ea4) ^ (s + round);
            }
            u += (u << 4) ^ t;
            out[i] = (s ^ t) / 4294967296.0f + (float)u;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    EXPECT_TRUE(has(program, "uitofp <16 x i32>")) << program.optimised();
    EXPECT_FALSE(has(program, "icmp ule i64") || has(program, "icmp ult i64")) << program.optimised();
}

// With ids of 64 bits, LLVM writes `y - 1` as a sum with 2^32 - 1, of which the lower 32 bits are used. The check of the bases is about these.
TEST(IndexBases, OfTheRowBefore_AreSmall) {
    Compiled program(R"(
        kernel void k(global const double* in, global double* out) {
            const int x = get_global_id(0), y = get_global_id(1);
            if (x >= 2 && x <= 321 && y >= 2 && y <= 321)
                out[y * 324 + x] = in[(y - 1) * 324 + x] + in[y * 324 + x] * in[(y + 1) * 324 + x];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    const std::string& code = program.optimised();
    std::set<std::string> large;  // sums with a number of more than 31 bits
    const std::regex sum(R"((%[\w.]+) = add (?:nuw |nsw )*i64 (\S+), (\S+))");
    for (auto found = std::sregex_iterator(code.begin(), code.end(), sum); found != std::sregex_iterator(); ++found)
        if (large.contains((*found)[2]) || large.contains((*found)[3]) || (*found)[3].str().starts_with("4294966"))
            large.insert((*found)[1]);
    EXPECT_FALSE(large.empty()) << code;
    const std::regex comparison(R"(icmp u\w+ i64 (\S+), (\S+))");
    for (auto found = std::sregex_iterator(code.begin(), code.end(), comparison); found != std::sregex_iterator();
         ++found)
        EXPECT_FALSE(large.contains((*found)[1]) || large.contains((*found)[2])) << (*found)[0] << code;
}

// Elements at all places that an int can have.
class AllPlaces {
public:
    AllPlaces()
        : memory_(static_cast<uint16_t*>(
              mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
    ~AllPlaces() { munmap(memory_, bytes); }
    AllPlaces(const AllPlaces&) = delete;
    AllPlaces& operator=(const AllPlaces&) = delete;

    [[nodiscard]] uint16_t* middle() const { return memory_ + half; }
    // `direction`: the step from one work-item to the next, 1 or -1.
    void expect_sums(uint32_t start, uint32_t items, uint32_t step, const std::string& where,
                     uint32_t direction = 1) const {
        std::map<int32_t, int> expected;
        for (uint32_t item = 0; item < items; ++item)
            expected[static_cast<int32_t>(start + item * direction + step)] += 1;
        for (const auto& [place, number] : expected)
            EXPECT_EQ(middle()[place], number) << where << ' ' << place;
    }

private:
    static constexpr size_t half = size_t{1} << 31, bytes = 2 * half * sizeof(uint16_t);
    uint16_t* const memory_;
};

// Around the least and the greatest int, for each order of the constants.
TEST(IndexBases, MayWrapAround) {
    constexpr uint64_t items = 64, groups = 2;
    Compiled program(R"(
        kernel void numbers(global ushort* a, global ushort* b, global ushort* c, uint start) {
            const uint i = start + get_global_id(0);
            a[(int)(i - 20)] += 1;
            b[(int)i] += 1;
            c[(int)(i + 7)] += 1;
        }
        kernel void halves(global ushort* a, global ushort* b, global ushort* c, uint start) {
            const ulong i = get_global_id(0) + start;
            a[(int)(i - 20)] += 1;
            b[(int)i] += 1;
            c[(int)(i + 7)] += 1;
        }
        kernel void words(global ushort* a, global ushort* b, global ushort* c, uint start) {
            const ulong i = get_global_id(0) + start;
            a[(int)(i + 4294967276ul)] += 1;
            b[(int)i] += 1;
            c[(int)((i + 4294967296ul) & 0xffffffffu) + 7] += 1;
        })");
    for (const std::string kernel : {"numbers", "halves", "words"}) {
        ASSERT_EQ(program.prepare(kernel, true, {items, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible),
                  "");
        for (const uint32_t from : {0U, 0x80000000U})
            for (const int32_t shift : {-200, -128, -127, -72, -71, -70, -64, -21, -20, -8, -7, -6, -1, 0, 7, 20, 21}) {
                const uint32_t start = from + static_cast<uint32_t>(shift);
                const AllPlaces before, at, behind;
                program.run({1, {groups * items, 1, 1}, {items, 1, 1}},
                            Arguments().add(before.middle()).add(at.middle()).add(behind.middle()).add(start));
                const std::string where = kernel + ' ' + std::to_string(start);
                before.expect_sums(start, groups * items, static_cast<uint32_t>(-20), where);
                at.expect_sums(start, groups * items, 0, where);
                behind.expect_sums(start, groups * items, 7, where);
            }
    }
}

TEST(IndexBases, CountDownAndMayWrapAround) {
    constexpr uint64_t items = 64, groups = 2;
    constexpr uint32_t half = 0x80000000U;
    Compiled program(R"(
        kernel void numbers(global ushort* a, global ushort* b, global ushort* c, uint start) {
            const uint i = start - (uint)get_global_id(0);
            a[(int)(i - 20)] += 1;
            b[(int)i] += 1;
            c[(int)(i + 7)] += 1;
        }
        kernel void unsigned_numbers(global ushort* a, global ushort* b, global ushort* c, uint start) {
            const uint i = start - (uint)get_global_id(0);
            (a - 0x80000000ul)[i - 20] += 1;
            (b - 0x80000000ul)[i] += 1;
            (c - 0x80000000ul)[i + 7] += 1;
        }
        kernel void complements(global ushort* a, global ushort* b, global ushort* c, uint start) {
            const uint i = (uint)get_global_id(0);
            a[(int)(start - i - 20)] += 1;
            b[(int)(~i + (start + 1))] += 1;
            c[(int)(start + 7 - i)] += 1;
        })");
    for (const std::string kernel : {"numbers", "unsigned_numbers", "complements"}) {
        ASSERT_EQ(program.prepare(kernel, true, {items, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible),
                  "");
        const uint32_t moved = kernel == "unsigned_numbers" ? half : 0;
        for (const uint32_t from : {0U, half})
            for (const int32_t shift :
                 {-21, -20, -8, -7, -6, -1, 0, 1, 7, 20, 56, 57, 63, 64, 65, 71, 83, 84, 85, 127, 128, 148, 200}) {
                const uint32_t start = from + static_cast<uint32_t>(shift);
                const AllPlaces before, at, behind;
                program.run({1, {groups * items, 1, 1}, {items, 1, 1}},
                            Arguments().add(before.middle()).add(at.middle()).add(behind.middle()).add(start));
                const std::string where = kernel + ' ' + std::to_string(start);
                constexpr uint32_t down = static_cast<uint32_t>(-1);
                before.expect_sums(start - moved, groups * items, static_cast<uint32_t>(-20), where, down);
                at.expect_sums(start - moved, groups * items, 0, where, down);
                behind.expect_sums(start - moved, groups * items, 7, where, down);
            }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
