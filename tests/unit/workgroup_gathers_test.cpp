// When lanes gather: where the processor gathers quickly, and what is gathered is likely to be in the first cache.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <regex>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* processor_with_quick_gathers = "icelake-server";

// How many loops over work-items of the kernel k have lanes, and how many have none.
struct Loops {
    unsigned with_lanes, without;
    friend bool operator==(const Loops&, const Loops&) = default;
};
Loops loops_of(const std::string& source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k"), "");
    return {program.result().lanes.loops, program.result().lanes.scalar_loops};
}

constexpr Loops one_with_lanes{1, 0}, one_without{0, 1};

constexpr const char* round_of_a_cipher = R"(
    kernel void k(global const uint* table, global uint* out, int rounds) {
        uint c = out[get_global_id(0)];
        for (int i = 0; i < rounds; ++i) c = table[c & 255] ^ table[256 + (c >> 8 & 255)] ^ table[512 + (c >> 24)];
        out[get_global_id(0)] = c;
    })";

constexpr const char* step_of_a_search = R"(
    kernel void k(global const int* first, global const int* targets, global const uchar* mask, global int* cost) {
        int node = get_global_id(0);
        if (mask[node])
            for (int i = first[node]; i < first[node] + 4; ++i) cost[targets[i]] = 1;
    })";

TEST(Gathers, FromATable_AreLanesWhereTheyAreQuick) {
    EXPECT_EQ(loops_of(round_of_a_cipher, processor_with_quick_gathers), one_with_lanes);
}

// Rows of four buffers, which lanes gather. One work-item after the other waits for a division in each iteration of the first kernel, and executes
// the iterations of the second at the same time.
TEST(Gathers, InChainsOfDivisions_AreLanes) {
    const auto source = [](const std::string& previous) {
        return R"(
            kernel void k(global const float* a, global const float* b, global const float* c, global float* x) {
                const int first = get_global_id(0) * 128;
                float kept[129], last = 1.0f;
                kept[0] = 0.5f;
                for (int i = 0; i < 128; ++i) {
                    const float q = a[first + i] * )" +
               previous + R"( + b[first + i];
                    last = (c[first + i] - last) / q;
                    kept[i + 1] = c[first + i] / q;
                }
                for (int i = 127; i >= 0; --i) x[first + i] = last + kept[i];
            })";
    };
    EXPECT_EQ(loops_of(source("kept[i]"), processor_with_512_bits), one_with_lanes);
    EXPECT_EQ(loops_of(source("c[first + i]"), processor_with_512_bits), one_with_lanes);
    constexpr const char* without_chain = R"(
        kernel void k(global const float* a, global const float* b, global const float* c, global float* x) {
            const int first = get_global_id(0) * 128;
            for (int i = 0; i < 128; ++i) x[first + i] = (c[first + i] - a[first + i]) / b[first + i];
        })";
    EXPECT_EQ(loops_of(without_chain, processor_with_512_bits), one_without);
}

TEST(Gathers, FromATableOfBytes_AreLanesWhereTheyAreQuick) {
    constexpr const char* source = R"(
        kernel void k(global const uchar* table, global uchar* out, int rounds) {
            uchar c = out[get_global_id(0)];
            for (int i = 0; i < rounds; ++i) c = table[c] + table[c ^ 1];
            out[get_global_id(0)] = c;
        })";
    EXPECT_EQ(loops_of(source, processor_with_quick_gathers), one_with_lanes);
}

// With Zen 4, a gather or a scatter of no lane takes as long as one of 16, so that guards save nothing.
TEST(Gathers, OfAllLanes_AreQuickOnProcessorsWhereThoseOfFewAreNot) {
    EXPECT_EQ(loops_of(step_of_a_search, processor_with_quick_gathers), one_with_lanes);
    EXPECT_EQ(loops_of(step_of_a_search, processor_with_512_bits), one_without);
    EXPECT_EQ(loops_of(round_of_a_cipher, processor_with_512_bits), one_with_lanes);
}

// Rounds such as those of Groestl: 64 words of 64 bits are in use, which fill two registers each. Their loads and stores wait for the gathers. 16 words just
// fill the registers.
TEST(Gathers, WithMoreValuesThanRegisters_AreSlowOnProcessorsWhereThoseOfFewLanesAre) {
    const auto rounds_of_words = [](unsigned words) {
        const std::string count = std::to_string(words), last = std::to_string(words - 1);
        return "#define WORDS " + count + R"(
            kernel void k(global const ulong* table, global ulong* out, int rounds) {
                const ulong x = out[get_global_id(0)];
                ulong s[WORDS], t[WORDS], sum = 0;
                for (int i = 0; i < WORDS; ++i) s[i] = x * (2 * i + 1);
                for (int r = 0; r < rounds; ++r) {
                    __attribute__((opencl_unroll_hint)) for (int i = 0; i < WORDS; ++i) {
                        t[i] = r;
                        __attribute__((opencl_unroll_hint)) for (int b = 0; b < 8; ++b)
                            t[i] ^= table[256 * b + (s[(i + b) & )" +
               last + R"(] >> (8 * b) & 255)];
                    }
                    __attribute__((opencl_unroll_hint)) for (int i = 0; i < WORDS; ++i) s[i] = t[i];
                }
                for (int i = 0; i < WORDS; ++i) sum += s[i];
                out[get_global_id(0)] = sum;
            })";
    };
    EXPECT_EQ(loops_of(rounds_of_words(32), processor_with_512_bits), one_without);
    EXPECT_EQ(loops_of(rounds_of_words(8), processor_with_512_bits), one_with_lanes);
    EXPECT_EQ(loops_of(rounds_of_words(32), processor_with_quick_gathers), one_with_lanes);
}

// A breadth-first search: few work-items have something to do. The loop's first iteration ran for vectors in which none has.
TEST(Gathers, InLoopsThatNoLaneEnters_AreNotExecuted) {
    Compiled program(step_of_a_search, processor_with_quick_gathers);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(std::regex_search(program.optimised(), std::regex(R"(label %if\.none[.a-z0-9]*, label %if\.some)")));
}

TEST(Gathers, InLoopsThatNoLaneEnters_LeaveTheirResults) {
    constexpr const char* source = R"(
        kernel void k(global const int* table, global const uchar* mask, global int* out, int n) {
            int id = get_global_id(0), sum = -1, last = id, found = 0;
            if (mask[id]) {
                sum = 0;
                for (int i = 0; i < n + (id & 3); ++i) {
                    last = table[(id * 7 + i * 5) & 63];
                    if (last == 60) { found = i + 1; break; }
                    sum += last;
                }
            }
            out[id] = sum + 1000 * last + 100000 * found;
        })";
    constexpr uint64_t count = 256;
    std::vector<int> table(64), out(count);
    std::vector<uint8_t> mask(count);
    for (int i = 0; i < 64; ++i)
        table[static_cast<size_t>(i)] = i;
    for (size_t i = 0; i < count; ++i)
        mask[i] = i / 32 % 2 == 1 || i == 70 ? 1 : 0;  // of most vectors, no or all work-items
    const int n = 9;
    std::vector<const char*> processors{""};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bitalg"))
        processors.push_back(processor_with_quick_gathers);
#endif
    for (const char* processor : processors)
        for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
            Compiled program(source, processor);
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            program.run({.global = {count, 1, 1}, .local = {64, 1, 1}},
                        Arguments().add(table.data()).add(mask.data()).add(out.data()).add(n));
            for (int id = 0; id < static_cast<int>(count); ++id) {
                int sum = -1, last = id, found = 0;
                if (mask[static_cast<size_t>(id)] != 0) {
                    sum = 0;
                    for (int i = 0; i < n + (id & 3); ++i) {
                        last = (id * 7 + i * 5) & 63;
                        if (last == 60) {
                            found = i + 1;
                            break;
                        }
                        sum += last;
                    }
                }
                ASSERT_EQ(out[static_cast<size_t>(id)], sum + 1000 * last + 100000 * found) << processor << ": " << id;
            }
        }
}

// Columns of local memory, and an array that lives across a barrier: the exchange of a Fourier transformation.
TEST(Gathers, FromLocalMemory_AreLanesWhereTheyAreQuick) {
    constexpr const char* source = R"(
        kernel void k(global float* data, local float* exchange) {
            int l = get_local_id(0);
            float v[8];
            for (int i = 0; i < 8; ++i) v[i] = data[i * 64 + l];
            for (int i = 0; i < 8; ++i) exchange[i * 66 + l] = v[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < 8; ++i) v[i] = exchange[l * 66 + (l >> 3) + i * 8];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < 8; ++i) data[i * 64 + l] = v[i];
        })";
    EXPECT_EQ(loops_of(source, processor_with_quick_gathers).without, 0U);
    EXPECT_GE(loops_of(source, processor_with_256_bits).without, 1U);
}

// The rows of many lanes are in the same set of a cache, where their step is a power of two.
TEST(Gathers, FromRowsThatAreFarApart_AreNotQuick) {
    constexpr const char* source = R"(
        kernel void k(global float* x, global const float* a, int n) {
            int row = get_global_id(0);
            for (int i = 1; i < n; ++i) x[row * n + i] -= x[row * n + i - 1] * a[row * n + i];
        })";
    EXPECT_EQ(loops_of(source, processor_with_quick_gathers), one_without);
}

// Counts of the numbers that `NUMBER` is in each iteration.
std::string counts_of(const std::string& number) {
    return R"(
        kernel void k(global const uint* in, global uint* out, local uint* counts, int n, int items) {
            int l = get_local_id(0);
            for (int i = 0; i < n; ++i) counts[()" +
           number + R"( & 15) * 64 + l]++;
            out[get_global_id(0)] = counts[l];
        })";
}

TEST(Gathers, OfWhatWasScattered_AreNotQuick) {
    EXPECT_EQ(loops_of(counts_of("in[get_global_id(0)] >> (i & 31)"), processor_with_quick_gathers), one_without);
}

// One work-item reads one element of each of n lines of memory, and the next one reads their neighbours.
TEST(Lines, OfWhichOneWorkItemReadsOneElement_AreReadByLanes) {
    EXPECT_EQ(loops_of(counts_of("in[i * items + get_global_id(0)]"), processor_with_quick_gathers), one_with_lanes);
}

// A histogram with vectors of 128 bits: bytes that all work-items of the launch read in turns, and atomic operations.
TEST(Lines, OfBytesForAHistogram_AreReadByLanes) {
    constexpr const char* source = R"(
        kernel void k(global const uchar* in, global uint* out, uint count) {
            local uint bins[256];
            for (uint i = get_global_id(0); i < count; i += get_global_size(0))
                atomic_inc(&bins[in[i]]);
            barrier(CLK_LOCAL_MEM_FENCE);
            out[get_global_id(0)] = bins[get_local_id(0)];
        })";
    EXPECT_EQ(loops_of(source, "x86-64-v2").without, 0U);
}

// One work-item waits for its own store, too, when each iteration adds to the same place.
TEST(Gathers, OfOnePlaceInEachIteration_AreQuick) {
    constexpr const char* source = R"(
        typedef struct { float x, y, z, w; } P;
        kernel void k(global P* out, global const P* in, int n) {
            int i = get_global_id(0);
            for (int k = 0; k < n; ++k) {
                float s = in[k].w * in[k].x;
                out[i].x += s * in[k].y;
                out[i].y += s * in[k].z;
                out[i].z += s * s;
            }
        })";
    EXPECT_EQ(loops_of(source, processor_with_quick_gathers).without, 0U);
}

// Lanes whose rows are short wait for those whose rows are long.
TEST(Gathers, InLoopsThatLanesLeaveOneByOne_AreNotQuick) {
    constexpr const char* source = R"(
        kernel void k(global const double* values, global const double* x, global const int* columns,
                      global const int* rows, global double* y) {
            int row = get_global_id(0);
            double sum = 0;
            for (int i = rows[row]; i < rows[row + 1]; ++i) sum += values[i] * x[columns[i]];
            y[row] = sum;
        })";
    EXPECT_EQ(loops_of(source, processor_with_quick_gathers), one_without);
}

// A vector stays in the loop until its last lane leaves it. Meanwhile it loads structures for all lanes.
TEST(Gathers, OfStructuresInLoopsAsLongAsEachLaneSays_AreNoLanes) {
    constexpr const char* source = R"(
        typedef struct { double energy, total, elastic, fission; } Point;
        kernel void k(global const int* counts, global const int* isotopes, global const int* places,
                      global const Point* points, global const double* energies, global double* sums, int length) {
            const int i = get_global_id(0), row = (int)(energies[i] * length);
            const double energy = energies[i];
            const int material = i * 7919 % 12, count = counts[material];
            double total = 0, elastic = 0, fission = 0;
            for (int j = 0; j < count; ++j) {
                const int isotope = isotopes[material * 34 + j], place = places[row * 68 + isotope];
                global const Point* low = &points[isotope * length + place];
                const double part = (low[1].energy - energy) / (low[1].energy - low[0].energy);
                total += low[1].total - part * (low[1].total - low[0].total);
                elastic += low[1].elastic - part * (low[1].elastic - low[0].elastic);
                fission += low[1].fission - part * (low[1].fission - low[0].fission);
            }
            sums[i] = total + elastic * fission;
        })";
    EXPECT_EQ(loops_of(source, processor_with_512_bits), one_without);
    // Where the lanes leave together, they pay.
    const std::string together = std::regex_replace(source, std::regex(R"(counts\[material\])"), "counts[0]");
    EXPECT_EQ(loops_of(together, processor_with_512_bits), one_with_lanes);
}

// The rows of a sparse matrix, each as long as it says, with the elements of neighbouring rows side by side. Without lanes, each element is on another line
// of memory.
TEST(Gathers, OfRowsSideBySideInLoopsAsLongAsEachLaneSays_AreLanes) {
    constexpr const char* source = R"(
        kernel void k(global const float* restrict values, global const float* restrict vector, global const int* restrict columns,
                      global const int* restrict lengths, int rows, global float* restrict out) {
            const int row = get_global_id(0);
            if (row < rows) {
                float sum = 0;
                const int length = lengths[row];
                for (int j = 0; j < length; j++) {
                    const int place = j * rows + row;
                    sum = __builtin_fmaf(values[place], vector[columns[place]], sum);
                }
                out[row] = sum;
            }
        })";
    EXPECT_EQ(loops_of(source, processor_with_512_bits), one_with_lanes);
}

// The edges of a tile, where the picture is reflected: neighbours are at most an element apart, so their elements are on few lines.
TEST(Gathers, OfReflectedNeighbours_AreLanes) {
    constexpr const char* source = R"(
        int reflected(int x, int n) { return min(2 * (n - 1) - x, max(x, -x)); }
        kernel void k(global const float* in, int step, int width, int height, global float* out) {
            const int i = get_local_id(0), x = get_global_id(0), y = reflected(get_global_id(1), height);
            global float* tile = out + get_group_id(0) * 48;
            tile[i] = in[y * step + reflected(x - 1, width)];
            if (i < 2) tile[i + 32] = in[y * step + reflected(x + 15, width)];
        })";
    EXPECT_EQ(loops_of(source, processor_with_512_bits), one_with_lanes);
}

// Products of bytes: each lane reads its row of `b`. Its address is computed before the loop, whose index is the same for all lanes.
constexpr const char* products_of_rows = R"(
    kernel void k(global const char4* a, global const char4* b, global int* out, int n, int shift) {
        int x = get_global_id(0), sum = 0;
        for (int i = 0; i < n; ++i) {
            char4 u = a[i + shift], v = b[PLACE];
            sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
        }
        out[x] = sum;
    })";

std::string products_at(const std::string& place) {
    std::string source = products_of_rows;
    return source.replace(source.find("PLACE"), 5, place);
}

TEST(Gathers, FromRows_ComputeNoAddressesInTheLoop) {
    const std::regex row_and_index("getelementptr [^,]*, <4 x ptr> %[^,]*, i64 %");
    for (const char* place : {"x * n + i", "x * n + shift + i", "(long)x * n + i"}) {
        Compiled program(products_at(place), "x86-64-v2");
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.loops, 1) << place;
        EXPECT_FALSE(std::regex_search(program.optimised(), row_and_index)) << place << program.optimised();
    }
}

// Tables of at most 64 bytes are permuted in registers, in a buffer that may end behind them.
TEST(Gathers, FromTablesOfBytes_ReadWhatOneWorkItemReads) {
    constexpr size_t items = 67;
    std::vector<uint32_t> in(items);
    for (size_t i = 0; i < items; ++i)
        in[i] = static_cast<uint32_t>(i * 2654435761U >> 7);
    std::vector<uint8_t> table(64);
    for (size_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<uint8_t>(255 - 3 * i);
    for (const uint32_t last : {15U, 31U, 63U})
        for (const char* guard : {"", "if (in[i] % 3 != 1)"}) {
            const std::string source = "kernel void k(global const uint* in, global const uchar* table, global uchar* "
                                       "out) { size_t i = get_global_id(0); " +
                                       std::string{guard} + " out[i] = table[in[i] >> 2 & " + std::to_string(last) +
                                       "] + table[in[i] & " + std::to_string(last) + "]; }";
            std::vector<uint8_t> expected(items);
            for (size_t i = 0; i < items; ++i)
                if (*guard == '\0' || in[i] % 3 != 1)
                    expected[i] = static_cast<uint8_t>(table[in[i] >> 2 & last] + table[in[i] & last]);
            for (const char* processor : {"x86-64-v3", "x86-64-v2"}) {
                Compiled program(source, processor);
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible),
                          "");
                std::vector<uint8_t> out(items);
                program.run({1, {items, 1, 1}, {items, 1, 1}},
                            Arguments().add(in.data()).add(table.data()).add(out.data()));
                EXPECT_EQ(out, expected) << last << ' ' << guard << ' ' << processor;
            }
        }
}

TEST(Gathers, FromRows_ReadWhatOneWorkItemReads) {
    constexpr int items = 24, length = 13, shift = 5;
    std::vector<int8_t> a(4 * (length + shift)), b(4 * items * (length + 2 * shift));
    for (size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<int8_t>(i * 37 + 11);
    for (size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<int8_t>(i * 59 + i / 7);
    for (const char* place : {"x * n + i", "x * n + shift + i", "(long)x * n + i", "x * (n + 3) - (i - n)",
                              "(uint)x * n + (uint)(i - 3) + 3u", "(x ^ 1) * n + i * 2 % n", "x * n + (i + x) % n"}) {
        std::vector<int> expected(items);
        for (const char* processor : {"", "x86-64-v3", "x86-64-v2"}) {
            Compiled program(products_at(place), processor);
            const bool is_first = *processor == '\0';
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged,
                                      is_first ? Lanes::none : Lanes::wherever_possible),
                      "");
            std::vector<int> out(items);
            program.run({1, {items, 1, 1}, {items, 1, 1}},
                        Arguments().add(a.data()).add(b.data()).add(out.data()).add(length).add(shift));
            if (is_first)
                expected = out;
            EXPECT_EQ(out, expected) << place << ' ' << processor;
        }
    }
}

// The same for stores: each lane writes its row.
TEST(Gathers, RowsThatAreWritten_ComputeNoAddressesInTheLoop) {
    constexpr int items = 24, length = 13;
    const std::regex row_and_index("getelementptr [^,]*, <4 x ptr> %[^,]*, i64 %");
    for (const char* type : {"int", "int4"}) {
        std::string text = "kernel void k(global const TYPE* a, global TYPE* b, int n) {"
                           " int x = get_global_id(0);"
                           " for (int i = 0; i < n; ++i) b[x * n + i] = a[i] + x; }";
        for (size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE"))
            text.replace(at, 4, type);
        Compiled program(text, "x86-64-v2");
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_EQ(program.result().lanes.loops, 1) << type;
        EXPECT_FALSE(std::regex_search(program.optimised(), row_and_index)) << program.optimised();
        const size_t elements = type[3] == '4' ? 4 : 1;
        std::vector<int> a(length * elements), b(items * length * elements);
        for (size_t i = 0; i < a.size(); ++i)
            a[i] = static_cast<int>(i * 100);
        program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(a.data()).add(b.data()).add(length));
        for (size_t i = 0; i < b.size(); ++i)
            ASSERT_EQ(b[i], a[i % a.size()] + static_cast<int>(i / a.size())) << type << ' ' << i;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
