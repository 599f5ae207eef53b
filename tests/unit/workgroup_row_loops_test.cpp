// Loops in which each lane walks along a row of its own.
#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* row_products = R"(
    kernel void k(global const float* a, global const float* x, global float* y, int n) {
        int row = get_global_id(0);
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += a[row * n + i] * x[i];
        y[row] = sum;
    })";

TEST(RowLoops, OfFloats_LoadFourElementsOfEachLaneAtOnce) {
    Compiled program(row_products, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_GE(count(program, "load <4 x float>"), 16U) << program.optimised();
}

// A lane's load of four elements costs as much as four loads one after the other, a gather more.
TEST(RowLoops, OfSums_HaveLanes) {
    Compiled program(R"(
        kernel void k(global const float* a, global float* sums, int n) {
            float sum = 0;
            for (int i = 0; i < n; ++i) sum += a[get_global_id(0) * n + i];
            sums[get_global_id(0)] = sum;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_GE(count(program, "load <4 x float>"), 16U) << program.optimised();
}

// How often the block that loads four elements of each lane takes a lane's address, or a part of it, out of a vector.
size_t extractions_beside_loads(const Compiled& program) {
    const std::string& code = program.optimised();
    const size_t load = code.find("load <4 x float>");
    EXPECT_NE(load, std::string::npos) << code;
    const size_t begin = code.rfind("\n\n", load), end = code.find("\n\n", load);
    const std::string block = code.substr(begin, end - begin);
    size_t found = 0;
    for (const char* vector : {"extractelement <16 x ptr", "extractelement <16 x i64>", "extractelement <16 x i32>"})
        for (size_t at = block.find(vector); at != std::string::npos; at = block.find(vector, at + 1))
            ++found;
    return found;
}

// The rows are taken out of their vector before the loop: a loop that extracts them takes as long as one of gathers.
TEST(RowLoops, ChooseTheLanesRowsBeforeTheLoop) {
    for (const std::string other : {"", "t += b[row * n + i] * x[i];"}) {  // two addresses with one index
        Compiled program(R"(
            kernel void k(global const float* a, global const float* b, global const float* x, global float* y, int n) {
                int row = get_global_id(0);
                if (row < n) {
                    float sum = 0, t = 0;
                    for (int i = 0; i < n; ++i) { sum += a[row * n + i] * x[i]; )" +
                             other + R"( }
                    y[row] = sum + t;
                }
            })",
                         processor_with_512_bits);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
        EXPECT_EQ(extractions_beside_loads(program), 0U) << program.optimised();
    }
}

// The rows of two matrices, of which one work-item reads each at a row of its own and at one of all: LLVM makes one index of both, added to the
// counter in the loop.
TEST(RowLoops, WithOneIndexForSeveralAddresses_ChooseTheLanesRowsBeforeTheLoop) {
    Compiled program(R"(
        kernel void k(global const float* a, global const float* b, global float* c, float alpha, int width, int n) {
            int j = get_global_id(0), i = get_global_id(1);
            if (i < width && j < width)
                for (int k = 0; k < n; ++k)
                    c[i * width + j] += alpha * a[i * n + k] * b[j * n + k] + alpha * b[i * n + k] * a[j * n + k];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_EQ(extractions_beside_loads(program), 0U) << program.optimised();
}

// Elements of each size, forwards and backwards, of each number of rounds, where some work-items have no row.
template <class T>
void expect_right_rows(const std::string& type) {
    Compiled program("typedef " + type + R"( T;
        kernel void k(global const T* a, global const int* rows, global T* y, int n, int width) {
            int id = get_global_id(0), row = rows[id];
            T sum = 0;
            if (row >= 0) {
                for (int i = 0; i < n; ++i) sum = sum * (T)3 + a[row * width + i];
                for (int i = n; i > 0; --i) sum = sum * (T)5 + a[row * width + i];
            }
            y[id] = sum;
        })");
    constexpr size_t items = 70, width = 40;
    std::vector<T> a(items * width), y(items), expected(items);
    for (size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<T>(i % 7);
    std::vector<int> rows(items);
    for (size_t id = 0; id < items; ++id)
        rows[id] = id % 5 == 3 ? -1 : static_cast<int>(id * 11 % items);
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        for (const int rounds : {0, 1, 3, 4, 5, 11, 16})
            for (const uint64_t local : {uint64_t{1}, uint64_t{33}, uint64_t{64}}) {
                for (size_t id = 0; id < items; ++id) {
                    T sum = 0;
                    const T* const row = a.data() + static_cast<size_t>(std::max(rows[id], 0)) * width;
                    for (int i = 0; i < rounds && rows[id] >= 0; ++i)
                        sum = static_cast<T>(sum * 3 + row[i]);
                    for (int i = rounds; i > 0 && rows[id] >= 0; --i)
                        sum = static_cast<T>(sum * 5 + row[i]);
                    expected[id] = sum;
                }
                std::ranges::fill(y, T{1});
                program.run({1, {items, 1, 1}, {local, 1, 1}},
                            Arguments().add(a.data()).add(rows.data()).add(y.data()).add(rounds).add(int{width}));
                EXPECT_EQ(y, expected) << type << ", " << rounds << " rounds, local size " << local;
            }
    }
}

TEST(RowLoops, OfElementsOfEachSize_AreRight) {
    expect_right_rows<uint8_t>("uchar");
    expect_right_rows<uint16_t>("ushort");
    expect_right_rows<uint32_t>("uint");
    expect_right_rows<uint64_t>("ulong");
    expect_right_rows<double>("double");  // whole numbers of less than 53 bits
}

// Each lane writes a row of its own from a private array: four words at once.
constexpr const char* written_rows = R"(
    kernel void k(global const uint* in, global uint* out, int n, int width) {
        uint own[41];
        const int i = get_global_id(0);
        for (int j = 0; j < 41; ++j) own[j] = in[(7 * i + j) & 63];
        for (int j = 1; j < n; ++j) own[j % 41] += own[(j * 5) % 41];
        for (int j = 0; j < n; ++j) out[i * width + j] = own[j];
    })";

TEST(RowLoops, ThatWriteWhatIsPrivate_StoreFourWordsAtOnce) {
    for (const auto& [processor, lanes] :
         {std::pair{processor_with_512_bits, 16U}, std::pair{processor_with_256_bits, 8U}}) {
        Compiled program(written_rows, processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GE(count(program, "store <4 x i32>"), lanes) << program.optimised();
    }
}

TEST(RowLoops, ThatWriteTheirRows_AreRight) {
    constexpr size_t items = 70, own_size = 41, in_size = 64;
    std::vector<uint32_t> in(in_size);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<uint32_t>(i * 2654435761U);
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(written_rows, processor);
        for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const int rounds : {0, 1, 3, 4, 5, 18, 41})
                for (const int width : {41, 44, 8}) {
                    if (rounds > width)
                        continue;  // rows of neighbours would meet
                    std::vector<uint32_t> out(items * 44 + 4, 9), expected(out);
                    for (size_t i = 0; i < items; ++i) {
                        uint32_t own[own_size];
                        for (size_t j = 0; j < own_size; ++j)
                            own[j] = in[(7 * i + j) % in_size];
                        for (size_t j = 1; j < static_cast<size_t>(rounds); ++j)
                            own[j % own_size] += own[j * 5 % own_size];
                        for (size_t j = 0; j < static_cast<size_t>(rounds); ++j)
                            expected[i * static_cast<size_t>(width) + j] = own[j];
                    }
                    for (const uint64_t local : {uint64_t{1}, uint64_t{33}, uint64_t{64}}) {
                        std::ranges::fill(out, 9U);
                        program.run({1, {items, 1, 1}, {local, 1, 1}},
                                    Arguments().add(in.data()).add(out.data()).add(rounds).add(width));
                        EXPECT_EQ(out, expected)
                            << processor << ", " << rounds << " rounds, width " << width << ", local size " << local;
                    }
                }
        }
    }
}

// An iteration reads what the one before has written, and backwards rows.
TEST(RowLoops, ThatReadTheRowsThatTheyWrite_AreRight) {
    constexpr size_t items = 70, width = 40;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
            kernel void k(global uint* out, global uint* back, int n) {
                uint own[40];
                const int i = get_global_id(0);
                for (int j = 0; j < 40; ++j) own[j] = i * 3 + j;
                for (int j = 1; j < n; ++j) own[(j * 7) % 40] ^= own[j] * 5;
                for (int j = 1; j < n; ++j) out[i * 40 + j] = out[i * 40 + j - 1] * 3 + own[j];
                for (int j = n - 1; j >= 0; --j) back[i * 40 + j] = own[j];
            })",
                         processor);
        for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const int rounds : {0, 1, 5, 40}) {
                std::vector<uint32_t> out(items * width, 9), back(out), right(out), right_back(out);
                for (size_t i = 0; i < items; ++i) {
                    uint32_t own[width];
                    for (size_t j = 0; j < width; ++j)
                        own[j] = static_cast<uint32_t>(i * 3 + j);
                    for (size_t j = 1; j < static_cast<size_t>(rounds); ++j)
                        own[j * 7 % width] ^= own[j] * 5;
                    for (size_t j = 1; j < static_cast<size_t>(rounds); ++j)
                        right[i * width + j] = right[i * width + j - 1] * 3 + own[j];
                    for (size_t j = 0; j < static_cast<size_t>(rounds); ++j)
                        right_back[i * width + j] = own[j];
                }
                program.run({1, {items, 1, 1}, {35, 1, 1}}, Arguments().add(out.data()).add(back.data()).add(rounds));
                EXPECT_EQ(out, right) << processor << ", " << rounds << " rounds";
                EXPECT_EQ(back, right_back) << processor << ", " << rounds << " rounds";
            }
        }
    }
}

// No work-item has a row: the loop runs once, for no lane, and reads what may be read.
TEST(RowLoops, WithoutAnActiveLane_ReadNothing) {
    Compiled program(R"(
        kernel void k(global const int* a, global const int* rows, global int* y, int first, int end) {
            int id = get_global_id(0), row = rows[id], sum = 7;
            if (row >= 0)
                for (int i = first; i < end; ++i) sum += a[row * end + i];
            y[id] = sum;
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    const int* const nothing = nullptr;
    for (const int first : {0, 1 << 30}) {
        std::vector<int> rows(64, -1), y(64);
        program.run({1, {64, 1, 1}, {64, 1, 1}},
                    Arguments().add(nothing).add(rows.data()).add(y.data()).add(first).add(first + 1000));
        EXPECT_EQ(y, std::vector<int>(64, 7)) << first;
    }
}

// The same where the place in the row is the program's own counter, which begins far from 0: no lane reads there when none is active, not even a
// place that is as far from what may be read.
TEST(RowLoops, WithoutAnActiveLane_ReadNothingFarAway) {
    Compiled program(R"(
        kernel void k(global const int4* a, global const int* rows, global int* y, int first, int end) {
            int id = get_global_id(0), row = rows[id];
            global const int4* its = a + row * 100;
            for (int i = first; i < end; ++i)
                if (row > i) {
                    int4 v = its[i];
                    if (v.x + v.y > v.z) y[id] += v.w;
                }
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    const int* const nothing = nullptr;
    std::vector<int> rows(64, -1), y(64, 7);
    constexpr int first = 1 << 30;
    program.run({1, {64, 1, 1}, {64, 1, 1}},
                Arguments().add(nothing).add(rows.data()).add(y.data()).add(first).add(first + 3));
    EXPECT_EQ(y, std::vector<int>(64, 7));
}

// One work-item for each part of the data, as in programs for processors: LLVM makes vectors along the part.
constexpr const char* parts = R"(
    kernel void parts(global double* x, global double* y, ulong n, double step) {
        const ulong size = (n + get_global_size(0) - 1) / get_global_size(0);
        const ulong begin = get_global_id(0) * size, end = min(begin + size, n);
        for (ulong k = begin; k < end; ++k) {
            double a = x[k], b = y[k];
            for (int i = 0; i < 4; ++i) {
                const double u = a + step * (b - a * b), v = b - step * (a * 0.3 - a * b);
                a += step * (v - u * v);
                b -= step * (u * 0.3 - u * v);
            }
            x[k] = a;
            y[k] = b;
        }
    }
    kernel void columns(global const float* x, global const float* y, global float* out, ulong n, float a) {
        for (ulong k = 0; k < n; ++k)
            out[k * n + get_global_id(0)] = a * x[k * n + get_global_id(0)] + y[k];
    })";

TEST(RowLoops, ThatWriteTheirRows_HaveNoLanesButVectors) {
    Compiled program(parts, processor_with_512_bits);
    ASSERT_EQ(program.prepare("parts"), "");
    EXPECT_EQ(program.result().lanes.loops, 0U);
    EXPECT_TRUE(has(program, "<8 x double>")) << program.optimised();
    EXPECT_FALSE(has(program, "gather")) << program.optimised();
    ASSERT_EQ(program.prepare("columns"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
}

// Sums of bytes around a place of each work-item, one of them weighted by the distance from it. LLVM adds the sums of integers in another order.
constexpr const char* weighted_sums = R"(
    kernel void sums(global const uchar* image, global const int* places, global int2* out, int reach) {
        global const uchar* const centre = image + places[get_global_id(0)];
        int all = 0, weighted = 0;
        for (int i = -reach; i <= reach; ++i) {
            all += centre[i];
            weighted += i * centre[i];
        }
        out[get_global_id(0)] = (int2)(all, weighted);
    }
    kernel void rows(global const int* values, global const int* begin, global int* out, int count) {
        int sum = 0;
        for (int i = 0; i < count; ++i) sum += values[begin[get_global_id(0)] + i];
        out[get_global_id(0)] = sum;
    })";

TEST(RowLoops, ThatAddUpIntegers_HaveNoLanesButVectors) {
    Compiled program(weighted_sums, processor_with_512_bits);
    for (const char* kernel : {"sums", "rows"}) {
        ASSERT_EQ(program.prepare(kernel), "");
        EXPECT_EQ(program.result().lanes.loops, 0U);
        EXPECT_TRUE(has(program, "reduce.add")) << program.optimised();
        EXPECT_FALSE(has(program, "gather")) << program.optimised();
    }
}

// Code without lanes, which launches measure beside that with lanes: vectors of neighbouring elements, none of neighbouring work-items.
TEST(RowLoops, InCodeWithoutLanes_AreVectors) {
    Compiled program(std::string(weighted_sums) + R"(
        kernel void each(global int* out, global const int* in) { out[get_global_id(0)] = in[get_global_id(0)] * 3; })",
                     processor_with_512_bits);
    program.run_all_passes();
    const auto prepare = [&](const char* kernel) {
        return program.prepare(kernel, false, {}, WorkGroupOptions::Ends::ragged, Lanes::none);
    };
    ASSERT_EQ(prepare("sums"), "");
    EXPECT_TRUE(has(program, "reduce.add")) << program.optimised();
    ASSERT_EQ(prepare("each"), "");
    EXPECT_FALSE(has(program, " x i32>")) << program.optimised();
}

// Sums up to each element that is not zero, from the sum of the work-items before. Rows whose distance is a multiple of 4 KiB are not read and written by
// lanes.
constexpr const char* running_sums = R"(
    kernel void usual_sums(global const float* in, global const float* before, global float* out, int length, int end) {
        const int item = get_global_id(0);
        float sum = 0;
        for (int i = 0; i < item; ++i) sum += before[i];
        for (int i = 0; i < length; ++i) {
            const float value = in[clamp(item * length + i, 0, end - 1)];
            sum += value;
            out[item * length + i] = value != 0 ? sum : 0;
        }
    })";

TEST(RowLoops, ThatReadAndWriteRowsOfPages_HaveNoLanes) {
    Compiled program(running_sums, processor_with_512_bits);
    ASSERT_EQ(program.prepare("usual_sums"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    EXPECT_TRUE(has(program, "masked.scatter")) << program.optimised();
    EXPECT_TRUE(has(program, "store float")) << program.optimised();  // one work-item after the other
}

TEST(RowLoops, OfPagesAndOtherLengths_AreRight) {
    constexpr size_t items = 48, longest = 2048;
    std::vector<float> in(items * longest);
    const std::vector<float> before(items, 1.0F);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i * 29 % 5);
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
            Compiled program(running_sums, processor);
            ASSERT_EQ(program.prepare("usual_sums", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const int length : {7, 1000, 1024, 2048}) {
                std::vector<float> out(in.size(), -1.0F), expected = out;
                for (size_t item = 0; item < items; ++item) {
                    auto sum = static_cast<float>(item);
                    for (size_t i = item * index_of(length); i < (item + 1) * index_of(length); ++i) {
                        sum += in[i];
                        expected[i] = in[i] != 0 ? sum : 0;
                    }
                }
                program.run({1, {items, 1, 1}, {16, 1, 1}}, Arguments()
                                                                .add(in.data())
                                                                .add(before.data())
                                                                .add(out.data())
                                                                .add(length)
                                                                .add(static_cast<int>(in.size())));
                EXPECT_EQ(out, expected) << processor << ' ' << length;
            }
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
