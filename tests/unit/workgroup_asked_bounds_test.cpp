// Indices that wrap around at an edge, and are used only where they are below a bound (asked_bounds.h).
#include "workgroup_harness.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A number to which 2^32 - 1 is added, cut to 32 bits, is large for the first work-item: no check before the loop may ask for a small one.
TEST(AskedBounds, OfTheElementBefore_LetLanesBeginAtTheEdge) {
    for (const char* guard : {"if (place >= width) continue;", "if (!(place < width)) continue;",
                              "if (place >= width || row >= height) continue;"}) {
        Compiled program(std::string{R"(
        kernel void k(global const float* in, global float* out, ulong width, ulong height) {
            const int x = get_global_id(0), y = get_global_id(1);
            float sum = 0;
            for (int step = 0; step < 3; ++step) {
                const uint place = x + step - 1, row = y - 1;
                )"} + guard + R"(
                sum += in[y * width + place];
            }
            out[y * width + x] = sum;
        })",
                         processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
        EXPECT_FALSE(has(program, "gather")) << guard << program.optimised();
        const std::string before = program.optimised().substr(0, program.optimised().find("\nitems."));
        std::set<std::string> large;
        const std::regex sum(R"((%[\w.]+) = (?:add|and) (?:nuw |nsw )*i64 (\S+), (\S+))");
        for (auto found = std::sregex_iterator(before.begin(), before.end(), sum); found != std::sregex_iterator();
             ++found)
            if ((*found)[3] == "4294967295" || large.contains((*found)[2]))
                large.insert((*found)[1]);
        const std::regex comparison(R"(icmp (?:samesign )?u\w+ i64 (\S+), (\S+))");
        for (auto found = std::sregex_iterator(before.begin(), before.end(), comparison);
             found != std::sregex_iterator(); ++found)
            EXPECT_FALSE(large.contains((*found)[1]) || large.contains((*found)[2])) << guard << (*found)[0] << before;
    }
}

// Bytes at all places that a uint can have.
class AllBytes {
public:
    AllBytes()
        : memory_(static_cast<uint8_t*>(
              mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        for (const uint64_t around : {uint64_t{0}, bytes / 2, bytes})
            for (uint64_t place = around < 200 ? 0 : around - 200; place < std::min(around + 200, bytes); ++place)
                memory_[place] = static_cast<uint8_t>(1 + place % 97);
    }
    ~AllBytes() { munmap(memory_, bytes); }
    AllBytes(const AllBytes&) = delete;
    AllBytes& operator=(const AllBytes&) = delete;

    [[nodiscard]] const uint8_t* begin() const { return memory_; }
    [[nodiscard]] int at(uint32_t place) const { return memory_[place]; }

private:
    static constexpr uint64_t bytes = uint64_t{1} << 32;
    uint8_t* const memory_;
};

// Of indices that begin around 0, 2^31 and 2^32, with bounds that are small, 2^31 or more.
TEST(AskedBounds, AndBoundsOfAllSizes_AreRight) {
    constexpr uint64_t work_items = 64;
    const AllBytes bytes;
    const auto expect_sums = [&](const Compiled& program, uint64_t bound, uint32_t start, bool adds_place,
                                 const std::string& where) {
        std::vector<uint64_t> sums(work_items);
        Arguments arguments;
        arguments.add(bytes.begin()).add(sums.data()).add(bound).add(start);
        program.run({1, {work_items, 1, 1}, {work_items, 1, 1}}, arguments);
        for (uint32_t item = 0; item < work_items; ++item) {
            uint64_t expected = 0;
            for (uint32_t step = 0; step < 4; ++step) {
                const uint32_t place = start + item + step - 2;
                expected += (place < bound ? bytes.at(place) * uint64_t{step + 1} : 0) + (adds_place ? place : 0);
            }
            EXPECT_EQ(sums[item], expected) << where << ' ' << bound << ' ' << start << ' ' << item;
        }
    };
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
        #define SUM(name, from, guard, always) \
            kernel void name(global const uchar* in, global ulong* out, ulong bound, uint start) { \
                const uint i = from; \
                ulong sum = 0; \
                for (uint step = 0; step < 4; ++step) { \
                    const uint place = i + step - 2; \
                    always; \
                    if (guard) \
                        sum += in[place] * (ulong)(step + 1); \
                } \
                out[get_global_id(0)] = sum; \
            }
        SUM(numbers, start + get_global_id(0), place < bound, )
        SUM(halves, get_global_id(0), place < bound, )
        SUM(both, start + get_global_id(0), bound > place && step < bound, )
        SUM(words, start + (uint)get_global_id(0), place < (uint)min(bound, (ulong)UINT_MAX), )
        SUM(equal, start + (uint)get_global_id(0), bound > 0 && place <= bound - 1, )
        SUM(places, start + get_global_id(0), place < bound, sum += place)
        SUM(first_places, get_global_id(0), place < bound, sum += place))",
                         processor);
        for (const std::string kernel : {"numbers", "halves", "both", "words", "equal", "places", "first_places"}) {
            ASSERT_EQ(program.prepare(kernel), "");
            const bool is_from_zero = kernel == "halves" || kernel == "first_places";
            const bool adds_place = kernel == "places" || kernel == "first_places";
            for (const uint64_t bound : {uint64_t{0}, uint64_t{50}, (uint64_t{1} << 31) - 1, uint64_t{1} << 31,
                                         (uint64_t{1} << 32) - 2, uint64_t{1} << 40}) {
                for (const uint32_t start : {0U, 1U, 2U, 0x7fffffe0U, 0x80000001U, 0xffffffe0U})
                    if ((!is_from_zero || start == 0) && (kernel != "words" || bound < UINT32_MAX))
                        expect_sums(program, bound, start, adds_place, processor + (' ' + kernel));
            }
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
