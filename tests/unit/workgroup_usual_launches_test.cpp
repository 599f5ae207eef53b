// Code for usual launches, in which rows consist of whole vectors and ids are small: the loops that it does not have, and its results.
#include "workgroup_harness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

std::string kernel_named(const std::string& name, const std::string& body) {
    return "kernel void " + name + "(global float* a, global const float* b, int n) {" + body + "}";
}

// How many square roots of one number and of several there are.
struct Roots {
    size_t scalar = 0, vectors = 0;
};

Roots roots_in(const std::string& name, const std::string& body) {
    Compiled code(kernel_named(name, body), processor_with_512_bits);
    EXPECT_EQ(code.prepare(name), "");
    return {count(code, "@llvm.sqrt.f32("), count(code, "@llvm.sqrt.v")};
}

constexpr const char* whole_row = "size_t i = get_global_id(0); a[i] = sqrt(b[i]);";
constexpr const char* guarded = "int i = get_global_id(0); if (i < n) a[i] = sqrt(b[i]);";
constexpr const char* chain = "int i = get_global_id(0); if (i < n) { float v = b[i]; for (int r = 0; r < n; ++r) v = "
                              "sqrt(v) / (1 + v); a[i] = v; }";
constexpr const char* square = "int x = get_global_id(0), y = get_global_id(1); float v = b[x]; for (int r = 0; r < n; "
                               "++r) v = sqrt(v) / (1 + v); a[x] = v * y;";

TEST(UsualLaunches, HaveNoLoopOneByOne) {
    EXPECT_GT(roots_in("any", whole_row).scalar, 0);
    EXPECT_EQ(roots_in("usual_", whole_row).scalar, 0);
    EXPECT_EQ(roots_in("usual_", guarded).scalar, 0);
    EXPECT_GT(roots_in("usual_", guarded).vectors, 0);
}

TEST(UsualLaunches, WithIdsOfOneDimension_HaveOneLoopForSeveralVectors) {
    EXPECT_GT(roots_in("any", chain).vectors, roots_in("usual_", chain).vectors);
    EXPECT_EQ(roots_in("usual_", chain).scalar, 0);
}

// Rows that may be one vector have a loop for one, but none one by one.
TEST(UsualLaunches, OfWholeVectors_HaveLoopsForOneVectorToo) {
    EXPECT_GT(roots_in("usual_vectors_", chain).vectors, roots_in("usual_", chain).vectors);
    EXPECT_EQ(roots_in("usual_vectors_", chain).scalar, 0);
    EXPECT_EQ(roots_in("usual_vectors_", guarded).scalar, 0);
}

// An index that an argument changes is checked, so the loop one by one remains.
TEST(UsualLaunches, CheckIndicesWithArguments) {
    EXPECT_GT(roots_in("usual_", "int i = get_global_id(0) + n; a[i] = sqrt(b[i]);").scalar, 0);
    EXPECT_EQ(roots_in("usual_", "int i = get_global_id(0) + 3; a[i] = sqrt(b[i]);").scalar, 0);
}

// Rows begin at multiples of a vector, so each vector is within a block of 16 or 32 ids.
TEST(UsualLaunches, BeginAtBlocksOfIds) {
    constexpr const char* neighbours = "int i = get_global_id(0); a[i] = sqrt(b[i / 16 * 16 + ((i + n) & 15)]);";
    EXPECT_GT(roots_in("any", neighbours).scalar, 0);
    EXPECT_EQ(roots_in("usual_", neighbours).scalar, 0);
    EXPECT_GT(roots_in("usual_", neighbours).vectors, 0);
}

TEST(UsualLaunches, KnowTheirRows) {
    const auto rows = [](const char* body, const std::string& name = "usual_") {
        Compiled code(kernel_named(name, body), processor_with_512_bits);
        EXPECT_EQ(code.prepare(name), "");
        return code.optimised().substr(code.optimised().rfind(' ') + 1);
    };
    EXPECT_EQ(rows(whole_row), "16");
    EXPECT_EQ(rows(chain), "64");
    EXPECT_EQ(rows(square), "16");
    EXPECT_EQ(rows(chain, "usual_vectors_"), "16");
}

// The results for several numbers of work-items that pass the guards.
std::vector<std::vector<float>> results(Compiled& code, const std::string& kernel, size_t row = 64) {
    constexpr size_t size = 512;
    std::vector<float> from(size);
    for (size_t i = 0; i < size; ++i)
        from[i] = std::sin(static_cast<float>(i)) + 2;
    EXPECT_EQ(code.prepare(kernel), "");
    std::vector<std::vector<float>> all;
    for (const int n : {0, 1, 16, 40, 64, 65, 200, 300, 400}) {
        std::vector<float>& made = all.emplace_back(size, -1);
        code.run({1, {4 * row, 1, 1}, {row, 1, 1}, {100, 0, 0}}, Arguments().add(made.data()).add(from.data()).add(n));
    }
    return all;
}

TEST(UsualLaunches, ComputeTheSame) {
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        for (const char* body : {whole_row, guarded, chain}) {
            Compiled code(kernel_named("usual_", body) + kernel_named("any", body), processor);
            EXPECT_EQ(results(code, "usual_"), results(code, "any")) << body << " on " << processor;
            Compiled vectors(kernel_named("usual_vectors_", body) + kernel_named("any", body), processor);
            for (const size_t row : {16, 48, 80})
                EXPECT_EQ(results(vectors, "usual_vectors_", row), results(vectors, "any", row))
                    << body << " on " << processor << " in rows of " << row;
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
