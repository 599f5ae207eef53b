// Vectors with increments, as in BLAS: x[id * inc_x + offset].
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

TEST(Increments, OfOneHaveLanes_AndOthersAreRight) {
    Compiled program(R"(
        kernel void k(global float* out, global const float* x, global const float* y, int n, int inc_x, int inc_y, int offset) {
            float sum = 0;
            for (int i = get_global_id(0); i < n; i += get_global_size(0))
                sum += x[i * inc_x + offset] * y[i * inc_y];
            out[get_global_id(0)] = sum;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    constexpr int count = 64, n = 500, offset = 5;
    std::vector<float> x(n * 3 + offset), y(n * 3);
    for (size_t i = 0; i < y.size(); ++i) {
        x[i] = static_cast<float>(i * 7 % 11);
        y[i] = static_cast<float>(i * 5 % 13);
    }
    struct Steps {
        int x, y;
    };
    const auto element = [](const std::vector<float>& of, int index) { return of[static_cast<size_t>(index)]; };
    for (const Steps& steps : {Steps{1, 1}, Steps{1, 2}, Steps{3, 1}, Steps{2, 3}, Steps{0, 1}}) {
        SCOPED_TRACE(steps.x * 10 + steps.y);
        std::vector<float> out(count, -1);
        program.run({1, {count, 1, 1}, {32, 1, 1}}, Arguments()
                                                        .add(out.data())
                                                        .add(x.data())
                                                        .add(y.data())
                                                        .add(int{n})
                                                        .add(steps.x)
                                                        .add(steps.y)
                                                        .add(int{offset}));
        for (int item = 0; item < count; ++item) {
            float expected = 0;
            for (int i = item; i < n; i += count)
                expected += element(x, i * steps.x + offset) * element(y, i * steps.y);
            ASSERT_EQ(out[static_cast<size_t>(item)], expected) << item;
        }
    }
}

// What is added is a column of the id's row: the argument is no increment, but the length of a row.
TEST(Increments, AreNoLengthsOfRows) {
    Compiled program(R"(
        kernel void k(global float* out, global const float* in, int width) {
            float sum = 0;
            for (int c = 0; c < width; ++c) sum += in[get_global_id(0) * width + c];
            out[get_global_id(0)] = sum;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int rows = 32, width = 9;
    std::vector<float> in(rows * width), out(rows);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i % 17);
    program.run({1, {rows, 1, 1}, {32, 1, 1}}, Arguments().add(out.data()).add(in.data()).add(int{width}));
    for (size_t row = 0; row < rows; ++row) {
        float expected = 0;
        for (size_t c = 0; c < width; ++c)
            expected += in[row * width + c];
        ASSERT_EQ(out[row], expected) << row;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
