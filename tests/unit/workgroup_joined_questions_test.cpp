// Questions that LLVM asks about two numbers at once (vectorizer/preparation/joined_questions.h).
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// Elements of an image that is a buffer, written behind checks of both bounds.
constexpr auto plane = R"(
    static void put(global float* values, int width, int height, int2 at, float value) {
        const int place = at.x + at.y * width;
        if (at.x < 0 || at.x >= width || at.y < 0 || at.y >= height) return;
        values[place] = value;
    }
    kernel void usual_plane(global float* values, int width, int height, float value) {
        put(values, width, height, (int2)(get_global_id(0), get_global_id(1)), value);
    })";

TEST(JoinedQuestions, AboutRows_AreNotAskedByLanes) {
    Compiled program(plane, processor_with_512_bits);
    ASSERT_EQ(program.prepare("usual_plane"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "<16 x i64>")) << program.optimised();
}

// Of numbers of each work-item (x, u, l), of a row (y, v, m) and of all (cut), which may be negative.
const char* const questions[] = {
    "x < 0 || y < 0",
    "x >= 0 && y >= 0",
    "(x | y) < 0",
    "(x | y | cut) > -1",
    "(u | v) > 15",
    "(u | v) < 4",
    "(u | v) <= 7 || (x | cut) < 0",
    "(x == 0 && y == 0) || u > 30",
    "(x | y) != 0 && (x & 1)",
    "(int)(l | m) < 0",
    "(l | m) < 0 || (l | m) > 31",
    "(ulong)(l | m) >= 64 && x != y",
    "(x | x * 3 | y) < 0",
    "(((x + 1) | 2) | y) < 0",
    "(short)(x | y) < 0",
    "(x | y) == 0 || (x | cut) == 0 || (y | cut) == 0",
};

TEST(JoinedQuestions, HaveTheAnswersOfWorkItemsOneByOne) {
    constexpr size_t width = 48, height = 6;
    for (const char* const question : questions)
        for (const std::string name : {"k", "usual_k"}) {
            const std::string source = "kernel void " + name + R"((global int* out, int left, int above, int cut) {
                const long l = (long)get_global_id(0) - left, m = (long)get_global_id(1) - above;
                const int x = (int)l, y = (int)m;
                const uint u = (uint)get_global_id(0), v = (uint)get_global_id(1);
                if ()" + question + R"() out[get_global_id(1) * 48 + get_global_id(0)] = x * 100 + (int)(u + v);
            })";
            Compiled one_by_one(source), in_lanes(source);
            ASSERT_EQ(one_by_one.prepare(name, false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
            ASSERT_EQ(in_lanes.prepare(name, false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
            EXPECT_EQ(in_lanes.result().lanes.loops, 1U) << question << in_lanes.result().lanes.reason;
            for (const int left : {0, 5, 70000})
                for (const int above : {0, 2, -70000})
                    for (const int cut : {-1, 0, 9}) {
                        const auto run = [&](const Compiled& program) {
                            std::vector<int> out(width * height, -7);
                            program.run({2, {width, height, 1}, {16, 3, 1}},
                                        Arguments().add(out.data()).add(left).add(above).add(cut));
                            return out;
                        };
                        EXPECT_EQ(run(in_lanes), run(one_by_one)) << question << ' ' << left << ' ' << above;
                    }
        }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
