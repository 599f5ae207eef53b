// Lanes whose addresses are likely a row, which is checked at run time: places within bounds, choices between an element and one that is the same for
// all lanes, and numbers that were converted. The results must be right whether or not they are a row.
#include "workgroup_harness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <regex>

namespace polder::compiler::workgroup::test {
namespace {

bool matches_pattern(const Compiled& program, const std::string& pattern) {
    return std::regex_search(program.optimised(), std::regex(pattern));
}

// Element `n` is the one outside. `place` computes the place of work-item i as an int.
std::string reader_of(const std::string& type, const std::string& result, const std::string& place) {
    return "kernel void k(global const " + type + "* in, global " + result +
           "* out, int n, int shift) {\n"
           "    int i = get_global_id(0), p = " +
           place +
           ";\n"
           "    global const " +
           type +
           "* from = p >= 0 && p < n ? in + p : in + n;\n"
           "    out[i] = convert_" +
           result + "(*from);\n}";
}

constexpr int likely_items = 200;

// All shifts for which rows begin before, within and behind the elements.
template <class T, class R>
void expect_reads_are_right(Compiled& program, float step = 1) {
    for (const int n : {0, 1, 5, 16, 40, 150, 300})
        for (const int shift : {0, -1, -7, 3, 64, -64, 290, -250, 2147483600, -2147483647}) {
            std::vector<std::array<T, 4>> in(static_cast<size_t>(n) + 1);
            for (size_t i = 0; i < in.size(); ++i)
                for (size_t c = 0; c < 4; ++c)
                    in[i][c] = static_cast<T>(i == static_cast<size_t>(n) ? 99 : i * 3 + c * 50 + 1);
            std::vector<std::array<R, 4>> out(likely_items), expected(likely_items);
            for (int i = 0; i < likely_items; ++i) {
                const auto moved = static_cast<int64_t>(std::floor(static_cast<float>(i) * step)) + shift;
                const auto p = static_cast<int>(static_cast<uint32_t>(moved));
                const auto& from = in[static_cast<size_t>(p >= 0 && p < n ? p : n)];
                std::ranges::copy(from, expected[static_cast<size_t>(i)].begin());
            }
            for (const uint64_t local : {uint64_t{8}, uint64_t{40}, uint64_t{likely_items}}) {
                std::ranges::fill(out, std::array<R, 4>{});
                program.run({1, {likely_items, 1, 1}, {local, 1, 1}},
                            Arguments().add(in.data()).add(out.data()).add(n).add(shift));
                ASSERT_EQ(out, expected) << n << " elements, shift " << shift << ", groups of " << local;
            }
        }
}

constexpr const char* moved_place = "(int)((uint)i + (uint)shift)";

// Addresses are not compared, and a copy keeps the order of memory.
TEST(LikelySteps, AChoiceOfAnElementOrOneOutside_IsOneQuestion) {
    Compiled program(reader_of("float4", "float4", moved_place), processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(matches_pattern(program, "phi <(32|64) x float>")) << program.optimised();
    EXPECT_FALSE(matches_pattern(program, "icmp \\w+ <\\d+ x (ptr|i64)>")) << program.optimised();
    Compiled here(reader_of("float4", "float4", moved_place));
    ASSERT_EQ(here.prepare("k"), "");
    expect_reads_are_right<float, float>(here);
}

TEST(LikelySteps, BytesThatAreConverted_KeepTheOrderOfMemory) {
    Compiled program(reader_of("uchar4", "float4", moved_place), processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(matches_pattern(program, "phi <(32|64) x i8>")) << program.optimised();
    Compiled here(reader_of("uchar4", "float4", moved_place));
    ASSERT_EQ(here.prepare("k"), "");
    expect_reads_are_right<uint8_t, float>(here);
    Compiled shorts(reader_of("ushort4", "int4", moved_place));
    ASSERT_EQ(shorts.prepare("k"), "");
    expect_reads_are_right<uint16_t, int>(shorts);
}

// A sum of 64 bits of what is loaded for all lanes, and of the work-item's index, cut to an int.
TEST(LikelySteps, LowerHalvesOfLongSums_AreOneQuestion) {
    for (const std::string& place :
         {std::string("(int)(get_global_id(0) + (long)shift + (as_long(in[n].xy) - 425201762403L))"),
          std::string("(int)(get_global_id(0) + (long)shift + (as_long(in[n].xy) - 425201762398L)) - 5")}) {
        const std::string source = reader_of("int4", "int4", place);
        Compiled program(source, processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_FALSE(matches_pattern(program, "icmp \\w+ <\\d+ x (ptr|i64)>")) << program.optimised();
        Compiled here(source);
        ASSERT_EQ(here.prepare("k"), "");
        expect_reads_are_right<int, int>(here);
    }
}

// Two work-items for each element: rows of the numbers 0, 0, 1, 1, ... are none.
TEST(LikelySteps, ConvertedNumbersThatAreNoRow_AreFound) {
    for (const char* result : {"float4", "uint4"}) {
        Compiled program(reader_of("uchar4", result, "(int)((uint)(int)floor((float)i * 0.5f) + (uint)shift)"));
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        if (result[0] == 'f')
            expect_reads_are_right<uint8_t, float>(program, 0.5F);
        else
            expect_reads_are_right<uint8_t, uint32_t>(program, 0.5F);
    }
}

// Divided by the width and multiplied with it again, as normalized coordinates are, rounded to the element; the fraction as for repeated images.
TEST(LikelySteps, NormalizedCoordinates_AreLikelyARow) {
    const std::string normalized = "((float)((uint)i + (uint)shift) + 0.5f) / width";
    const std::string repeated = "(int)((c - floor(c)) * width)",
                      mirrored = "(int)(fabs(c - 2 * rint(0.5f * c)) * width)";
    for (const std::string& place : {std::string("(int)(c * width)"), repeated, mirrored,
                                     std::string("(int)floor(clamp(c, 0.0f, 1.0f) * width)")}) {
        const std::string source =
            "kernel void k(global const uchar4* in, global float4* out, int shift, float width) {\n"
            "    int i = get_global_id(0);\n    float c = " +
            normalized + ";\n    out[i] = convert_float4(in[" + place + "]);\n}";
        Compiled program(source, processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_TRUE(matches_pattern(program, "phi <(32|64) x i8>")) << place << program.optimised();
    }
}

// Whether the places of all work-items are a row is asked before the loop; the lanes are asked only where they are none.
TEST(LikelySteps, ARowOfAllWorkItems_IsOneQuestion) {
    for (const std::string& coordinate : {std::string("s * width"), std::string("(s - floor(s)) * width"),
                                          std::string("fabs(0.5f * s - rint(0.5f * s)) * (2 * width)")}) {
        const std::string source = "kernel void k(global const uchar4* in, global float4* out, float width) {\n"
                                   "    int i = get_global_id(0);\n    float s = ((float)i + 0.5f) / width, c = " +
                                   coordinate +
                                   ";\n    global const uchar4* from = c >= 0.0f && c < width ? in + (int)c : in - 1;\n"
                                   "    out[i] = convert_float4(*from);\n}";
        Compiled program(source, processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_TRUE(matches_pattern(program, "lanes.check")) << coordinate << program.optimised();
        // Each lane's coordinate is computed only where the lanes are asked.
        const std::string& code = program.optimised();
        const size_t of_lanes = code.find("fdiv <16 x float>"), question = code.find("\nlanes.check");
        EXPECT_NE(of_lanes, std::string::npos) << code;
        EXPECT_GT(of_lanes, question) << coordinate << code;
    }
}

// Both loops over the neighbours are unrolled: the columns' places do not change in the loop over rows, and are not counted there.
TEST(LikelySteps, ReadsOfMirroredNeighbours_AreUnrolled) {
    Compiled program(
        "int place(float s, float size) {\n"
        "    float h = 0.5f * s;\n    return (int)min(fabs(h - rint(h)) * (2.0f * size), size - 0.5f);\n}\n"
        "kernel void k(global const float4* in, global float4* out, float width, float height) {\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n    float4 sum = 0;\n"
        "    for (int j = -1; j <= 1; ++j)\n        for (int i = -1; i <= 1; ++i)\n"
        "            sum += in[place((y + j + 0.5f) / height, height) * 128 + place((x + i + 0.5f) / width, width)];\n"
        "    out[y * (int)get_global_size(0) + x] = sum;\n}",
        processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_GE(count(program, "\ntogether"), 9U) << program.optimised();
}

// The lower bits of a sum: the first lane's alone are compared, in the loop and, for a gather, nothing else.
TEST(LikelySteps, RemaindersByPowersOfTwo_AreOneQuestion) {
    const auto source = [](const std::string& type, const std::string& guard, const std::string& place) {
        return "kernel void k(global const int* in, global int* out, int shift) {\n    " + type +
               " i = get_global_id(0);\n    " + guard + "out[i] = in[" + place + "];\n}";
    };
    const std::vector<int> in = [] {
        std::vector<int> numbers(1024);
        std::iota(numbers.begin(), numbers.end(), 1000);
        return numbers;
    }();
    for (const char* type : {"int", "uint", "size_t"})
        for (const bool is_guarded : {false, true})
            for (const int factor : {1, -1}) {
                const std::string place = factor > 0 ? "(i + shift) & 1023" : "(shift - i) & 1023";
                const std::string text = source(type, is_guarded ? "if (i >= 3 && i % 5 != 2) " : "", place);
                Compiled program(text, processor_with_512_bits);
                ASSERT_EQ(program.prepare("k"), "");
                EXPECT_TRUE(has(program, "\ntogether")) << program.optimised();
                if (!is_guarded) {
                    EXPECT_FALSE(matches_pattern(program, "icmp \\w+ <\\d+ x (ptr|i32|i64)>"))
                        << text << program.optimised();
                }
                Compiled here(text);
                ASSERT_EQ(here.prepare("k"), "");
                for (const int shift : {0, 1, 17, 1007, 1008, 1009, 1023, -1, -30, INT32_MAX - 100, INT32_MIN + 30}) {
                    std::vector<int> out(likely_items, -1), expected(likely_items, -1);
                    for (int i = 0; i < likely_items; ++i)
                        if (!is_guarded || (i >= 3 && i % 5 != 2))
                            expected[static_cast<size_t>(i)] =
                                in[(static_cast<uint32_t>(shift) + static_cast<uint32_t>(factor * i)) & 1023];
                    here.run({1, {likely_items, 1, 1}, {likely_items, 1, 1}},
                             Arguments().add(in.data()).add(out.data()).add(shift));
                    EXPECT_EQ(out, expected) << text << shift;
                }
            }
}

// Bounds of the whole range and small ones; numbers that wrap around from the largest to the smallest; under a guard, too.
TEST(LikelySteps, PlacesWithinBounds_AreCheckedAtTheEnds) {
    for (const bool is_guarded : {false, true}) {
        Compiled program(
            std::string("kernel void k(global const int* in, global int* out, int low, int high, int shift) {\n"
                        "    int i = get_global_id(0);\n") +
            (is_guarded ? "    if (i % 5 == 3) return;\n" : "") +
            "    out[i] = in[min(max((int)((uint)i + (uint)shift), low), high)];\n}");
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_TRUE(matches_pattern(program, "together")) << program.optimised();
        constexpr int n = 260;
        std::vector<int> in(n);
        for (int i = 0; i < n; ++i)
            in[static_cast<size_t>(i)] = i * 11 + 5;
        for (const auto& [low, high] : {std::pair{0, n - 1}, {0, 0}, {17, 18}, {100, 130}, {0, 63}})
            for (const int shift : {0, -1, 1, -100, 59, 61, 250, 2147483600, 2147483647, -2147483647 - 1}) {
                std::vector<int> out(likely_items, -1), expected(likely_items, -1);
                for (int i = 0; i < likely_items; ++i) {
                    const auto p = static_cast<int>(static_cast<uint32_t>(i) + static_cast<uint32_t>(shift));
                    if (!is_guarded || i % 5 != 3)
                        expected[static_cast<size_t>(i)] = in[static_cast<size_t>(std::min(std::max(p, low), high))];
                }
                program.run({1, {likely_items, 1, 1}, {likely_items, 1, 1}},
                            Arguments().add(in.data()).add(out.data()).add(low).add(high).add(shift));
                ASSERT_EQ(out, expected) << low << " to " << high << ", shift " << shift;
            }
    }
}

// Reflected until they are inside, in a loop. Rows of pixels have three bytes.
TEST(LikelySteps, PlacesThatALoopReflects_AreARowBetweenTheEdges) {
    constexpr const char* source = R"(
        int reflected(int place, int size) {
            if (place < 0 || place >= size) {
                if (size == 1)
                    return 0;
                do
                    place = place < 0 ? -place - 1 : 2 * size - 1 - place;
                while (place < 0 || place >= size);
            }
            return place;
        }
        kernel void k(global const uchar* in, global uchar* out, int width, int height, int border, int rows) {
            const int x = get_global_id(0), y = get_global_id(1), pitch = width + 2 * border;
            if (x >= pitch || y >= rows)
                return;
            global const uchar* const from = in + (reflected(y - border, height) * width + reflected(x - border, width)) * 3;
            global uchar* const to = out + (y * pitch + x) * 3;
            const uchar red = from[0], green = from[1], blue = from[2];
            to[0] = red;
            to[1] = green;
            to[2] = blue;
        })";
    Compiled code(source, processor_with_512_bits);
    ASSERT_EQ(code.prepare("k"), "");
    EXPECT_TRUE(matches_pattern(code, " load <48 x i8>")) << code.optimised();
    Compiled program(source);
    ASSERT_EQ(program.prepare("k"), "");
    for (const int width : {1, 2, 7, 33, 64})
        for (const int border : {0, 1, 5, 40}) {
            constexpr int height = 3;
            const int pitch = width + 2 * border, rows = height + 2 * border;
            const auto reflected = [](int place, int size) {
                while (place < 0 || place >= size)
                    place = size == 1 ? 0 : place < 0 ? -place - 1 : 2 * size - 1 - place;
                return place;
            };
            std::vector<uint8_t> in(static_cast<size_t>(width) * height * 3);
            std::iota(in.begin(), in.end(), uint8_t{1});
            std::vector<uint8_t> out(static_cast<size_t>(pitch) * static_cast<size_t>(rows) * 3), expected(out);
            for (size_t i = 0; i < expected.size(); ++i) {
                const int place = static_cast<int>(i / 3), x = place % pitch, y = place / pitch;
                const int from = reflected(y - border, height) * width + reflected(x - border, width);
                expected[i] = in[static_cast<size_t>(from) * 3 + i % 3];
            }
            program.run({.dimensions = 2,
                         .global = {static_cast<uint64_t>(pitch + 15) / 16 * 16, static_cast<uint64_t>(rows), 1},
                         .local = {16, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(width).add(height).add(border).add(rows));
            EXPECT_EQ(out, expected) << width << " " << border;
        }
}

// As at the edges of a picture: before the first element and behind the last one they are in the opposite order.
TEST(LikelySteps, ReflectedPlaces_AreARowBetweenTheEdges) {
    for (const bool is_guarded : {false, true}) {
        const std::string source =
            std::string("kernel void k(global const float* in, global float* out, int n, int shift) {\n"
                        "    int i = get_global_id(0), p = i + shift;\n") +
            (is_guarded ? "    if (i % 5 == 3) return;\n" : "") +
            "    out[i] = in[min(2 * (n - 1) - p, max(p, -p))];\n}";
        Compiled code(source, processor_with_512_bits);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_TRUE(matches_pattern(code, is_guarded ? "masked.load.v16f32" : " load <16 x float>"))
            << code.optimised();
        // The first and the last lane are asked.
        if (!is_guarded) {
            EXPECT_FALSE(matches_pattern(code, "icmp (eq|ne) <16 x i32>")) << code.optimised();
        }
        Compiled program(source);
        ASSERT_EQ(program.prepare("k"), "");
        for (const int n : {97, 100, 130, 250})
            for (const int shift : {0, -1, 1, -8, -50, -96, 5}) {
                std::vector<float> in(static_cast<size_t>(n));
                std::iota(in.begin(), in.end(), 1.0F);
                std::vector<float> out(likely_items, -1), expected(likely_items, -1);
                for (int i = 0; i < likely_items && i + shift <= 2 * (n - 1); ++i) {
                    const int p = i + shift, reflected = std::min(2 * (n - 1) - p, std::max(p, -p));
                    if (!is_guarded || i % 5 != 3)
                        expected[static_cast<size_t>(i)] = in[static_cast<size_t>(reflected)];
                }
                const int items = std::min(likely_items, 2 * (n - 1) - shift + 1) / 8 * 8;
                for (int i = items; i < likely_items; ++i)
                    expected[static_cast<size_t>(i)] = -1;
                for (const uint64_t local : {uint64_t{8}, static_cast<uint64_t>(items)}) {
                    std::ranges::fill(out, -1.0F);
                    program.run({1, {static_cast<uint64_t>(items), 1, 1}, {local, 1, 1}},
                                Arguments().add(in.data()).add(out.data()).add(n).add(shift));
                    ASSERT_EQ(out, expected) << n << " elements, shift " << shift << ", groups of " << local;
                }
            }
    }
}

// A bound that falls below the least number is the greatest one from there on.
TEST(LikelySteps, BoundsThatWrapAround_AreFound) {
    Compiled program("kernel void k(global const int* in, global int* out, int n, int bound) {\n"
                     "    int i = get_global_id(0), falling = (int)((uint)bound - (uint)i);\n"
                     "    out[i] = in[min(max(i, falling), n - 1)] + 1000 * in[max(min(i, falling), 0)];\n}");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int n = 300;
    std::vector<int> in(n);
    std::iota(in.begin(), in.end(), 1);
    constexpr int lowest = std::numeric_limits<int>::min();
    for (const int bound :
         {0, 3, -5, 100, 399, 1000, lowest, lowest + 3, lowest + 50, std::numeric_limits<int>::max()}) {
        std::vector<int> out(likely_items, -1), expected(likely_items, -1);
        for (int i = 0; i < likely_items; ++i) {
            const auto falling = static_cast<int>(static_cast<uint32_t>(bound) - static_cast<uint32_t>(i));
            expected[static_cast<size_t>(i)] = in[static_cast<size_t>(std::min(std::max(i, falling), n - 1))] +
                                               1000 * in[static_cast<size_t>(std::max(std::min(i, falling), 0))];
        }
        program.run({1, {likely_items, 1, 1}, {likely_items, 1, 1}},
                    Arguments().add(in.data()).add(out.data()).add(n).add(bound));
        ASSERT_EQ(out, expected) << bound;
    }
}

// The neighbours of an element, at the ends the element itself. LLVM adds the condition as a number, or subtracts with saturation.
TEST(LikelySteps, NeighboursWithinARow_AreAskedFor) {
    for (const char* type : {"int", "uint"}) {
        const std::string index = type;
        const std::string source =
            "kernel void k(global const float* in, global float* out, " + index + " n) {\n    " + index +
            " i = get_global_id(0), before = i == 0 ? i : i - 1, behind = i == n - 1 ? i : i + 1;\n"
            "    out[i] = in[before] + 1000 * in[behind];\n}";
        Compiled code(source, processor_with_512_bits);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_GE(count(code, "load <16 x float>"), 2U) << code.optimised();
        Compiled program(source);
        ASSERT_EQ(program.prepare("k"), "");
        constexpr size_t items = 192;
        std::vector<float> in(items + 1);
        std::iota(in.begin(), in.end(), 1.0F);
        for (const int n : {0, 1, 2, 16, 17, 40, 191, 192, 500})
            for (const uint64_t local : {1, 48, 64, 192}) {
                std::vector<float> out(items), expected(items);
                for (size_t i = 0; i < items; ++i) {
                    const size_t behind = i + 1 == static_cast<size_t>(n) ? i : i + 1;
                    expected[i] = in[i == 0 ? i : i - 1] + 1000 * in[behind];
                }
                program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
                ASSERT_EQ(out, expected) << n << " in groups of " << local;
            }
    }
}

// The element of a row and a column, which are a quotient and a remainder of the id plus `shift`.
std::string flat_reader(const std::string& width) {
    return "kernel void k(global const int* in, global int* out, int width, int pitch, int shift) {\n"
           "    int i = get_global_id(0), flat = i + shift, row = flat / " +
           width + ", column = flat % " + width +
           ";\n"
           "    out[i] = in[row * pitch + column];\n}";
}

// Widths below the number of lanes and above it, rows that end within a vector, negative quotients and remainders.
TEST(LikelySteps, RowsAndColumnsOfAFlatIndex_AreAskedFor) {
    constexpr int middle = 400000;
    std::vector<int> in(2 * middle);
    std::iota(in.begin(), in.end(), 7);
    for (const char* divisor : {"width", "40", "3"}) {
        Compiled code(flat_reader(divisor), processor_with_512_bits);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_EQ(matches_pattern(code, "together"), divisor[0] != '3') << code.optimised();
        Compiled program(flat_reader(divisor));
        ASSERT_EQ(program.prepare("k"), "");
        for (const int width : {1, 3, 16, 40, 150, 1000, -1, -40})
            for (const int shift : {0, 1, 39, 777, -100, -201, -777}) {
                const int by = divisor[0] == 'w' ? width : std::stoi(divisor);
                const int pitch = std::abs(width) + 5;
                std::vector<int> out(likely_items, -1), expected(likely_items);
                for (int i = 0; i < likely_items; ++i) {
                    const int place = middle + (i + shift) / by * pitch + (i + shift) % by;
                    expected[static_cast<size_t>(i)] = in[static_cast<size_t>(place)];
                }
                program.run({1, {likely_items, 1, 1}, {likely_items, 1, 1}},
                            Arguments().add(in.data() + middle).add(out.data()).add(width).add(pitch).add(shift));
                ASSERT_EQ(out, expected) << "by " << by << ", shift " << shift;
            }
    }
}

// Neighbours who take turns, as in kernels that exchange numbers within a warp: no step that a check could confirm. Larger blocks have one.
TEST(LikelySteps, OfNeighboursWhoTakeTurns_AreNotAskedFor) {
    struct Place {
        const char* text;
        bool is_asked;
        int (*of)(int item);
    };
    constexpr Place places[] = {{"(i & 28) | (i + 3 & 3)", false, [](int i) { return (i & 28) | ((i + 3) & 3); }},
                                {"4 * i & 28", false, [](int i) { return 4 * i & 28; }},
                                {"n + (i & ~7)", false, [](int i) { return 5 + (i & ~7); }},
                                {"n + i & 1023", true, [](int i) { return (5 + i) & 1023; }}};
    for (const Place& place : places) {
        const std::string text = std::string("kernel void k(global const int* in, global int* out, int n) {\n"
                                             "    int i = get_global_id(0);\n    out[i] = in[") +
                                 place.text + "];\n}";
        Compiled code(text, processor_with_512_bits);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_EQ(matches_pattern(code, "together"), place.is_asked) << code.optimised();
        Compiled program(text);
        ASSERT_EQ(program.prepare("k"), "");
        std::vector<int> in(1024), out(likely_items), expected(likely_items);
        std::iota(in.begin(), in.end(), 9);
        for (int i = 0; i < likely_items; ++i)
            expected[static_cast<size_t>(i)] = in[static_cast<size_t>(place.of(i))];
        program.run({1, {likely_items, 1, 1}, {likely_items, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(5));
        EXPECT_EQ(out, expected) << place.text;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
