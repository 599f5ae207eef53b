// Loops that lanes leave in their order: the iterations that all of them execute come first, without masks (vectorizer/code/whole_iterations.h).
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint64_t group = 32, all_items = 96;

// The number of elements before the work-item's own, in its group, that are equal to it.
const std::string equal_before = R"(
    kernel void k(global const uint* in, global uint* out, uint size) {
        const uint gid = get_global_id(0), lid = get_local_id(0);
        local uint digits[32];
        if (gid < size) digits[lid] = in[gid] & 3;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (gid >= size) return;
        uint before = 0;
        for (uint i = 0; i < lid; i++)
            if (digits[i] == digits[lid]) before++;
        out[gid] = before;
    })";

std::vector<uint32_t> mixed_numbers() {
    std::vector<uint32_t> all(all_items);
    for (uint32_t i = 0; i < all_items; ++i)
        all[i] = i * 2654435761U >> 7;
    return all;
}

TEST(WholeIterations, OfTriangles_HaveNoMasks) {
    for (const char* processor : {processor_with_512_bits, processor_with_256_bits, "x86-64-v2"}) {
        Compiled program(equal_before, processor);
        EXPECT_EQ(program.prepare("k", true, {group, 1, 1}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible),
                  "");
        EXPECT_TRUE(has(program, "lanes.whole")) << processor;
    }
}

// Each lane's numbers are many or few, in no order.
TEST(WholeIterations, OfRowsWithLengthsInMemory_AreNotLookedFor) {
    Compiled program(R"(
        kernel void k(global const int* ends, global const float* in, global float* out) {
            const int i = get_global_id(0);
            float sum = 0;
            for (int j = 0; j < ends[i]; ++j) sum += in[j];
            out[i] = sum;
        })",
                     processor_with_512_bits);
    EXPECT_EQ(program.prepare("k", true, {group, 1, 1}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_FALSE(has(program, "lanes.whole"));
}

TEST(WholeIterations, OfRanks_AreRight) {
    const std::vector<uint32_t> in = mixed_numbers();
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(equal_before, processor);
        ASSERT_EQ(program.prepare("k", true, {group, 1, 1}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible),
                  "");
        for (const uint32_t size : {0U, 1U, 40U, 63U, 96U}) {
            std::vector<uint32_t> out(all_items, 777);
            program.run({1, {all_items, 1, 1}, {group, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(size));
            for (uint32_t i = 0; i < all_items; ++i) {
                uint32_t before = 0;
                for (uint32_t j = i / group * group; j < i; ++j)
                    before += (in[j] & 3) == (in[i] & 3) ? 1 : 0;
                EXPECT_EQ(out[i], i < size ? before : 777) << processor << " size " << size << " i " << i;
            }
        }
    }
}

struct Counted {
    const char *type, *begin, *goes_on, *step;
};

// Counters and bounds that grow with the work-item, steps of all kinds, numbers that wrap around, sums and stores under a mask, and divisions by what is 0
// for lanes outside of it.
std::string counting_kernel(const Counted& loop, const std::string& name) {
    const std::string type = loop.type;
    return "kernel void " + name + "(global const uint* in, global uint* out, global uint* last, " + type +
           " n, uint d) { const " + type +
           " i = get_global_id(0); uint sum = 0, rounds = 0; if (in[i] % 5 != 0) { for (" + type +
           " j = " + loop.begin + "; " + loop.goes_on + "; j " + loop.step +
           ") { sum = sum * 3 + in[rounds & 63] + d * (uint)j / (in[i] % 5); ++rounds; last[get_global_id(0)] = "
           "(uint)j; } "
           "} "
           "out[i] = sum + rounds * 65536; }\n";
}

constexpr Counted counted_loops[] = {
    {"int", "0", "j < i", "+= 1"},
    {"uint", "0", "j < i", "+= 1"},
    {"int", "i", "j < n", "+= 1"},
    {"int", "i", "j <= n", "+= 3"},
    {"int", "n", "j > i", "-= 1"},
    {"int", "n", "j >= i", "-= 4"},
    {"uint", "i + 1", "j < n", "+= 2"},
    {"long", "i", "j < n", "+= 1"},
    {"ulong", "0", "j < i + n", "+= 5"},
    {"int", "-5", "j < 2 * i - n", "+= 1"},
    {"uint", "4294967290u", "j != i", "+= 1"},
    {"int", "i", "j != -3", "-= 1"},
    {"int", "3 * i", "j > n", "-= 2"},
    {"long", "n - i", "j < 20", "+= 1"},
};

// One work-item at a time has the same results.
TEST(WholeIterations, OfAllKindsOfCounters_AreRight) {
    const std::vector<uint32_t> in = mixed_numbers();
    std::string source;
    for (size_t k = 0; k < std::size(counted_loops); ++k)
        source += counting_kernel(counted_loops[k], "k" + std::to_string(k));
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(source, processor);
        size_t whole = 0;
        for (size_t k = 0; k < std::size(counted_loops); ++k) {
            const Counted& loop = counted_loops[k];
            const auto results = [&](Lanes lanes) {
                EXPECT_EQ(
                    program.prepare("k" + std::to_string(k), true, {group, 1, 1}, WorkGroupOptions::Ends::whole, lanes),
                    "");
                whole += has(program, "lanes.whole") ? 1 : 0;
                std::vector<uint32_t> all;
                for (const int64_t n : {0, 1, 17, 50, 90}) {
                    std::vector<uint32_t> out(2 * all_items, 777);
                    Arguments arguments;
                    arguments.add(in.data()).add(out.data()).add(out.data() + all_items);
                    if (std::string(loop.type).ends_with("long"))
                        arguments.add(n);
                    else
                        arguments.add(static_cast<int32_t>(n));
                    program.run({1, {all_items, 1, 1}, {group, 1, 1}}, arguments.add(uint32_t{2}));
                    all.insert(all.end(), out.begin(), out.end());
                }
                return all;
            };
            EXPECT_EQ(results(Lanes::wherever_possible), results(Lanes::none))
                << processor << ": " << loop.begin << "; " << loop.goes_on << "; " << loop.step;
        }
        EXPECT_GE(whole, 6U) << processor;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
