// Stores of elements that are a constant step apart, of which those between must not change.
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// Every second number of a row, as in red-black relaxation.
constexpr const char* every_second = R"(
    kernel void k(global float* out, global const float* in, int n) {
        int x = get_global_id(0);
        if (in[x] < n)
            out[2 * x + 1] = in[x] * 1.5f;
    })";

TEST(Gaps, AreRowsUnderMasksWithMaskRegisters) {
    Compiled program(every_second, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GT(count(program, "@llvm.masked.store.v32f32"), 0U) << program.optimised();
}

// Where all lanes store, their addresses follow from the first one's and are not taken from a vector: these are stores of their own.
TEST(Gaps, AreStoredAtKnownDistancesWithoutMaskRegisters) {
    for (const auto& [processor, lanes] : {std::pair{processor_with_256_bits, 8U}, std::pair{"x86-64-v2", 4U}}) {
        Compiled program(every_second, processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GE(count(program, "store float"), lanes) << program.optimised();
    }
}

// Stored by work-items of which a few, most, or all pass, by a mask of lanes; `index` may wrap around.
template <class T>
void expect_right_elements(const std::string& type, const std::string& index, unsigned step, unsigned begin,
                           unsigned wrap, const std::string& processor) {
    SCOPED_TRACE(type + ", out[" + index + "], processor '" + processor + "'");
    Compiled program("typedef " + type + R"( T;
        kernel void k(global T* out, global const int* at, int begin) {
            int i = get_global_id(0);
            if (at[i] > 0) out[)" +
                         index + R"(] = (T)(i + at[i]);
        }
        kernel void all(global T* out, global const int* at, int begin) {
            int i = get_global_id(0);
            out[)" + index +
                         R"(] = (T)(i + at[i]);
        })",
                     processor);
    constexpr size_t items = 100;
    for (const std::string kernel : {"k", "all"}) {
        ASSERT_EQ(program.prepare(kernel, false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        for (const int passing : {0, 1, 15, 99, 100}) {
            std::vector<int> at(items);
            std::vector<T> out(std::max<size_t>(step * (items + begin), wrap)), expected(out.size(), T{9});
            for (size_t i = 0; i < items; ++i) {
                at[i] = static_cast<int>(i * 37 % items) < passing ? static_cast<int>(i % 7 + 1) : 0;
                if (const size_t place = step * i + begin; at[i] > 0 || kernel == "all")
                    expected[wrap > 0 ? place % wrap : place] =
                        static_cast<T>(static_cast<T>(i) + static_cast<T>(at[i]));
            }
            for (const uint64_t local : {uint64_t{4}, uint64_t{25}, uint64_t{50}, uint64_t{100}}) {
                std::ranges::fill(out, T{9});
                program.run({1, {items, 1, 1}, {local, 1, 1}},
                            Arguments().add(out.data()).add(at.data()).add(static_cast<int>(begin)));
                EXPECT_EQ(out, expected) << kernel << ", local size " << local << ", passing " << passing;
            }
        }
    }
}

TEST(Gaps, KeepTheirElements) {
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        expect_right_elements<float>("float", "2 * i + begin", 2, 1, 0, processor);
        expect_right_elements<float>("float", "(size_t)i * 4 + 3", 4, 3, 0, processor);
        expect_right_elements<int>("int", "3 * (i + begin)", 3, 0, 0, processor);
        expect_right_elements<uint8_t>("uchar", "4 * i + begin", 4, 2, 0, processor);
        expect_right_elements<uint16_t>("ushort", "8 * i + begin", 8, 5, 0, processor);
        expect_right_elements<uint64_t>("ulong", "(size_t)i * 2", 2, 0, 0, processor);
    }
}

// Some members of structures of four, of which the second and third are also adjacent, under a mask and without one.
template <class T>
void expect_right_members(const std::string& type, const std::string& processor) {
    SCOPED_TRACE(type + ", processor '" + processor + "'");
    Compiled program("typedef " + type + R"( T;
        kernel void k(global T* three, global T* two, global T* odd, global const int* at) {
            const size_t i = get_global_id(0);
            const int p = at[i];
            three[4 * i + 1] = (T)(i + 1); three[4 * i + 2] = (T)p; three[4 * i] = (T)i;
            if (p > 1) { two[4 * i + 1] = (T)(i + p); two[4 * i + 3] = (T)p; }
            odd[3 * i + 1] = (T)(i + 3); odd[3 * i + 2] = (T)p;
        })",
                     processor);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    constexpr size_t items = 72, steps = 4;
    std::vector<int> at(items);
    std::vector<T> three(steps * items), two(three), odd(three), right_three(three.size(), T{9}),
        right_two(right_three), right_odd(right_three);
    for (const int passing : {0, 35, 100}) {
        std::ranges::fill(right_two, T{9});
        for (size_t i = 0; i < items; ++i) {
            const int p = at[i] = static_cast<int>(i * 37 % 100) < passing ? static_cast<int>(i % 7 + 2) : 1;
            right_three[4 * i] = static_cast<T>(i);
            right_three[4 * i + 1] = static_cast<T>(i + 1);
            right_odd[3 * i + 1] = static_cast<T>(i + 3);
            right_three[4 * i + 2] = right_odd[3 * i + 2] = static_cast<T>(p);
            if (p > 1) {
                right_two[4 * i + 1] = static_cast<T>(static_cast<T>(i) + static_cast<T>(p));
                right_two[4 * i + 3] = static_cast<T>(p);
            }
        }
        for (const uint64_t local : {uint64_t{4}, uint64_t{24}, uint64_t{72}}) {
            for (std::vector<T>* const out : {&three, &two, &odd})
                std::ranges::fill(*out, T{9});
            program.run({1, {items, 1, 1}, {local, 1, 1}},
                        Arguments().add(three.data()).add(two.data()).add(odd.data()).add(at.data()));
            EXPECT_EQ(three, right_three) << "local size " << local << ", passing " << passing;
            EXPECT_EQ(two, right_two) << "local size " << local << ", passing " << passing;
            EXPECT_EQ(odd, right_odd) << "local size " << local << ", passing " << passing;
        }
    }
}

TEST(Gaps, BesideSeveralMembersKeepTheirElements) {
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        expect_right_members<float>("float", processor);
        expect_right_members<uint16_t>("ushort", processor);
        expect_right_members<uint64_t>("ulong", processor);
    }
}

// The row begins before the member that is stored last.
TEST(Gaps, BehindOtherMembersKeepTheirElements) {
    constexpr size_t items = 72;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
            kernel void k(global float* out, global const int* at) {
                const size_t i = get_global_id(0);
                const int p = at[i];
                if (p > 1) { out[4 * i + 1] = (float)(i + p); out[4 * i + 3] = (float)p; }
            })",
                         processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        std::vector<int> at(items);
        std::vector<float> out(4 * items, 9), expected = out;
        for (size_t i = 0; i < items; ++i) {
            at[i] = static_cast<int>(i * 37 % 5);
            if (at[i] > 1) {
                expected[4 * i + 1] = static_cast<float>(i) + static_cast<float>(at[i]);
                expected[4 * i + 3] = static_cast<float>(at[i]);
            }
        }
        program.run({1, {items, 1, 1}, {24, 1, 1}}, Arguments().add(out.data()).add(at.data()));
        EXPECT_EQ(out, expected) << processor;
    }
}

// Members of one structure are one row.
TEST(Gaps, BesideSeveralMembersAreOneRow) {
    Compiled program(R"(
        kernel void k(global float* out, global const float* in) {
            size_t i = get_global_id(0);
            float a = in[i];
            out[4 * i] = a; out[4 * i + 1] = a * 2; out[4 * i + 2] = a * 3;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_TRUE(has(program, "<i1 true, i1 true, i1 true, i1 false, i1 true, i1 true, i1 true, i1 false, "))
        << program.optimised();
    EXPECT_FALSE(has(program, "<i1 true, i1 false, "));
    EXPECT_EQ(count(program, "@llvm.masked.scatter"), 0U) << program.optimised();
}

// An index of eight bits begins anew in the middle of a vector.
TEST(Gaps, ThatWrapAroundAreRight) {
    constexpr unsigned places = 256;
    for (const std::string processor : processors)
        if (runs_here(processor))
            expect_right_elements<float>("float", "(uchar)(2 * i + begin)", 2, 75, places, processor);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
