// Functions that are not inlined and whose callers are lanes: one call for all lanes (vectorizer/vector_functions.h).
#include "workgroup_harness.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <unistd.h>

namespace polder::compiler::workgroup::test {
namespace {

// All functions, before LLVM's pipeline, which may inline them.
std::string module_of(Compiled& program, const std::string& kernel) {
    const std::string dump = testing::TempDir() + "vector_functions_" + std::to_string(getpid());
    setenv("POLDER_TEST_DUMP", dump.c_str(), 1);
    const std::string problem =
        program.prepare(kernel, true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::where_they_pay);
    unsetenv("POLDER_TEST_DUMP");
    EXPECT_EQ(problem, "");
    std::ifstream file(dump + ".opt");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(dump);
    std::filesystem::remove(dump + ".opt");
    return text;
}

// A hash with a state in private memory, a loop whose length differs between work-items, and a function that it calls in turn.
constexpr const char* hashing = R"(
    uint called_round(uint x, uint key) {
        for (int i = 0; i < 4; ++i) x = rotate(x, 7u) * 2654435761u ^ key + i;
        return x;
    }
    void called_update(private uint* state, global const uint* text, uint length, uint seed) {
        for (uint i = 0; i < length; ++i)
            for (int k = 0; k < 4; ++k) state[k] = called_round(state[k] + text[i], seed + k);
        if (length & 1) return;
        state[0] ^= state[3];
    }
    kernel void k(global const uint* texts, global const uint* lengths, global uint* out, uint seed) {
        const size_t i = get_global_id(0);
        uint state[4] = {1, 2, 3, (uint)i};
        called_update(state, texts + 8 * i, lengths[i], seed);
        if (lengths[i] > 5) called_update(state, texts, 3, seed + 1);
        for (int k = 0; k < 4; ++k) out[4 * i + k] = state[k];
    })";

uint32_t round_of(uint32_t x, uint32_t key) {
    for (uint32_t i = 0; i < 4; ++i)
        x = ((x << 7 | x >> 25) * 2654435761U) ^ (key + i);
    return x;
}

void update(std::array<uint32_t, 4>& state, const uint32_t* text, uint32_t length, uint32_t seed) {
    for (uint32_t i = 0; i < length; ++i)
        for (uint32_t k = 0; k < 4; ++k)
            state[k] = round_of(state[k] + text[i], seed + k);
    if (length % 2 == 0)
        state[0] ^= state[3];
}

TEST(VectorFunctions, AreCalledOnceForAllLanes) {
    constexpr uint32_t n = 128, seed = 77;
    std::vector<uint32_t> texts(size_t{8} * n), lengths(n), expected(size_t{4} * n);
    for (uint32_t i = 0; i < texts.size(); ++i)
        texts[i] = i * 2654435761U;
    for (uint32_t i = 0; i < n; ++i) {
        lengths[i] = i * 5 % 9;
        std::array<uint32_t, 4> state{1, 2, 3, i};
        update(state, &texts[size_t{8} * i], lengths[i], seed);
        if (lengths[i] > 5)
            update(state, texts.data(), 3, seed + 1);
        std::ranges::copy(state, expected.begin() + std::ptrdiff_t{4} * i);
    }
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(hashing, processor);
        for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, lanes), "");
            EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
            // With vectors of 128 bits, lanes do not pay for all forms of them.
            EXPECT_TRUE(program.result().lanes.serial_calls.empty() || processor == "x86-64-v2") << processor;
            std::vector<uint32_t> out(expected.size());
            program.run({1, {n, 1, 1}, {64, 1, 1}},
                        Arguments().add(texts.data()).add(lengths.data()).add(out.data()).add(seed));
            EXPECT_EQ(out, expected) << processor;
        }
    }
}

// The first call is made by all work-items, the second one by some. One work-item's code is not needed.
TEST(VectorFunctions, HaveAFormWithAMaskAndOneWithout) {
    Compiled program(hashing, processor_with_512_bits);
    const std::string module = module_of(program, "k");
    const std::regex forms(R"(\ndefine internal [^\n]*@called_\w+\.for16\.)");
    const auto found = std::distance(std::sregex_iterator(module.begin(), module.end(), forms), std::sregex_iterator());
    EXPECT_GE(found, 3) << module;
    EXPECT_EQ(count(module, "\ndefine internal"), static_cast<size_t>(found)) << module;
    EXPECT_GE(count(module, "mul <16 x i32>"), 2U) << module;
}

// For a `break` out of a block with variables, optimizing Clang writes a switch with an end that is unreachable, as written here.
TEST(VectorFunctions, MayHaveEndsThatAreUnreachable) {
    constexpr uint32_t n = 128;
    constexpr const char* breaking = R"(
        uint called_sum(global const uint* text, uint length) {
            uint sum = 0;
            while (length) {
                uint part[4];
                for (uint k = 0; k < 4; ++k) part[k] = text[k] * 2654435761u;
                for (uint k = 0; k < 4 && k < length; ++k) sum = rotate(sum, 5u) ^ part[(sum >> k) & 3];
                uint way = 0;
                if (length <= 4) {
                    sum += length;
                    way = 2;
                }
                switch (way) {
                case 0: break;
                case 2: return sum;
                default: __builtin_unreachable();
                }
                length -= 4;
                text += 4;
            }
            return sum;
        }
        kernel void k(global const uint* texts, global const uint* lengths, global uint* out) {
            const size_t i = get_global_id(0);
            out[i] = called_sum(texts + 12 * i, lengths[i]);
        })";
    std::vector<uint32_t> texts(size_t{12} * n), lengths(n), expected(n);
    for (uint32_t i = 0; i < texts.size(); ++i)
        texts[i] = i * 2246822519U;
    for (uint32_t i = 0; i < n; ++i) {
        lengths[i] = i * 5 % 13;
        uint32_t sum = 0;
        for (uint32_t k = 0; k < lengths[i]; ++k)
            sum = (sum << 5 | sum >> 27) ^
                  (texts[size_t{12} * i + size_t{k} / 4 * 4 + ((sum >> k % 4) & 3)] * 2654435761U);
        expected[i] = sum + (lengths[i] > 0 ? (lengths[i] - 1) % 4 + 1 : 0);
    }
    Compiled program(breaking, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    EXPECT_TRUE(program.result().lanes.serial_calls.empty());
    if (!runs_here(processor_with_512_bits))
        GTEST_SKIP() << "the processor has no AVX-512";
    std::vector<uint32_t> out(n);
    program.run({1, {n, 1, 1}, {64, 1, 1}}, Arguments().add(texts.data()).add(lengths.data()).add(out.data()));
    EXPECT_EQ(out, expected);
}

// Structures by value, results in memory, bytes, doubles, pointers that differ by a step, by nothing and by other numbers, no result.
TEST(VectorFunctions, TakeEveryKindOfParameter) {
    constexpr uint32_t n = 96;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
            typedef struct { int a; char b; double c; } three;
            three called_sum(three x, three y, char more) {
                three sum = {x.a + y.a, x.b + y.b + more, x.c * y.c};
                return sum;
            }
            void called_note(global int* to, char a, short b, double c, int shared) { *to += a * 1000 + b * 10 + (int)c + shared; }
            double called_half(long a) { return a * 0.5; }
            kernel void k(global int* out, global const int* places, int shared) {
                const int i = get_global_id(0);
                three x = {i, (char)i, i * 0.5}, y = {shared, 2, 3};
                if (i % 3 != 0) x = called_sum(x, y, (char)(i & 7));
                called_note(out + 95 - i, (char)i, (short)(i * 3), i * 1.5, shared);
                if (i % 2) called_note(out + 96 + places[i], x.b, (short)x.a, x.c, 1);
                out[192 + i] = x.a + x.b + (int)x.c + (int)called_half(i * 4L);
            })",
                         processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GT(program.result().lanes.loops, 0U) << program.result().lanes.reason;
        std::vector<int> out(size_t{3} * n, 4), expected(size_t{3} * n, 4), places(n);
        constexpr int shared = 17;
        for (int i = 0; i < static_cast<int>(n); ++i) {
            places[index_of(i)] = i * 37 % 96;
            int a = i, b = i;
            double c = i * 0.5;
            if (i % 3 != 0) {
                a += shared;
                const int byte = (b + 2 + (i & 7)) & 0xff;
                b = byte < 0x80 ? byte : byte - 0x100;  // a char
                c *= 3;
            }
            expected[index_of(95 - i)] += i * 1000 + i * 3 * 10 + static_cast<int>(i * 1.5) + shared;
            if (i % 2 != 0)
                expected[index_of(96 + places[index_of(i)])] +=
                    b * 1000 + static_cast<short>(a) * 10 + static_cast<int>(c) + 1;
            expected[index_of(192 + i)] = a + b + static_cast<int>(c) + i * 2;
        }
        program.run({1, {n, 1, 1}, {40, 1, 1}}, Arguments().add(out.data()).add(places.data()).add(shared));
        EXPECT_EQ(out, expected) << processor;
    }
}

// Lanes would wait for each other for ever, or there is no end to inlining.
TEST(VectorFunctions, WithAtomicOperationsOrRecursionAreCalledForOneLaneAfterTheOther) {
    Compiled program(R"(
        uint called_ticket(volatile global uint* next, uint x) { return atomic_add(next, x); }
        uint called_depth(uint x) { return x < 3 ? 1 : 1 + called_depth(x / 2); }
        kernel void k(global uint* out, volatile global uint* next) {
            const uint i = get_global_id(0);
            called_ticket(next, i);
            out[i] = called_depth(i);
        })",
                     processor_with_256_bits);
    const std::string module = module_of(program, "k");
    EXPECT_EQ(count(module, ".for8"), 0U) << module;
    constexpr uint32_t n = 64;
    std::vector<uint32_t> out(n), next(1);
    program.run({1, {n, 1, 1}, {64, 1, 1}}, Arguments().add(out.data()).add(next.data()));
    EXPECT_EQ(next[0], n * (n - 1) / 2);
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t depth = 1;
        for (uint32_t x = i; x >= 3; x /= 2)
            ++depth;
        EXPECT_EQ(out[i], depth);
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
