// Vectors moved as data (OpenCL C 6.15.7, 6.15.11, 6.15.12): vload and vstore of every type, width and address space,
// shuffle and shuffle2, asynchronous copies of every type, prefetch.
#include "buffer.h"
#include "kernel_runner.h"
#include "opencl_types.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace polder::math {
namespace {

using test::KernelRunner;
using test::Range;

template <class T>
Buffer<T> counted(size_t count, int first = 1) {
    Buffer<T> values(count);
    for (size_t i = 0; i < count; ++i)
        values[i] = static_cast<T>(static_cast<int64_t>(i % 100) + first);
    return values;
}

// Through constant, private, local and global memory, at places that are aligned to the element alone.
std::string travel(const std::string& type, int width) {
    const std::string w = width_suffix(width);
    return "kernel void travel" + w + "(constant " + type + "* a, global " + type + "* out, global " + type +
           "* again) {\n    local " + type + " shared[16 * 8 + 1];\n    " + type +
           " own[2 * 16 + 1];\n    size_t i = get_global_id(0), l = get_local_id(0);\n    vstore" + w + "(vload" + w +
           "(i, a + 1), 1, own + 1);\n    vstore" + w + "(vload" + w +
           "(1, own + 1), l, shared + 1);\n    barrier(CLK_LOCAL_MEM_FENCE);\n    vstore" + w + "(vload" + w +
           "(7 - l, shared + 1), i, out + 1);\n    vstore" + w + "(vload" + w + "(i, out + 1), i, again);\n}\n";
}

TEST(VectorLoadsAndStores, ReachExactlyTheirElements_InEveryAddressSpace) {
    for_all_types([](auto zero, const std::string& type) {
        using T = decltype(zero);
        std::string source;
        for (const int width : all_widths)
            if (width > 1)
                source += travel(type, width);
        KernelRunner runner{source};
        for (const int width : all_widths) {
            if (width == 1)
                continue;
            const auto w = static_cast<size_t>(width);
            constexpr size_t items = 24, group = 8;
            Buffer<T> in = counted<T>(items * w + 1), out(items * w + 2, 101), again(items * w + 1, 101);
            void* const pointers[] = {in.data(), out.data(), again.data()};
            runner.run("travel" + width_suffix(width), pointers, Range{{items, 1, 1}, {group, 1, 1}});
            EXPECT_EQ(out.front(), T(101)) << type << width;
            EXPECT_EQ(out.back(), T(101)) << type << width;
            EXPECT_EQ(again.back(), T(101)) << type << width;
            for (size_t i = 0; i < items; ++i)
                for (size_t k = 0; k < w; ++k) {
                    const size_t mirror = i / group * group + group - 1 - i % group;
                    ASSERT_EQ(out[1 + i * w + k], in[1 + mirror * w + k]) << type << width;
                    ASSERT_EQ(again[i * w + k], in[1 + mirror * w + k]) << type << width;
                }
        }
    });
}

constexpr int shuffled_widths[] = {2, 4, 8, 16};

// One kernel of one work-item per work-group that shuffles with masks of its own, for each pair of widths.
std::string shuffles(const std::string& type, const std::string& mask) {
    std::string source;
    for (const int from : shuffled_widths)
        for (const int to : shuffled_widths) {
            const std::string load_mask = "vload" + std::to_string(to) + "(i, m)";
            const std::string x = "vload" + std::to_string(from) + "(i, a)",
                              y = "vload" + std::to_string(from) + "(i, b)";
            source += "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k" + std::to_string(from) + "_" +
                      std::to_string(to) + "(global const " + type + "* a, global const " + type +
                      "* b, global const " + mask + "* m, global " + type + "* one, global " + type +
                      "* two) {\n    size_t i = get_global_id(0);\n    vstore" + std::to_string(to) + "(shuffle(" + x +
                      ", " + load_mask + "), i, one);\n    vstore" + std::to_string(to) + "(shuffle2(" + x + ", " + y +
                      ", " + load_mask + "), i, two);\n}\n";
        }
    return source;
}

template <class T>
void expect_shuffled(const std::string& type) {
    using Mask = UnsignedLike<T>;
    KernelRunner runner{shuffles(type, "u" + signed_name(sizeof(T)))};
    constexpr size_t items = 12;
    Buffer<T> a = counted<T>(items * 16, 1), b = counted<T>(items * 16, 27);
    std::mt19937_64 random{5};
    Buffer<Mask> masks(items * 16);
    for (Mask& mask : masks)
        mask = static_cast<Mask>(random());  // only the low bits count
    for (const size_t from : shuffled_widths)
        for (const size_t to : shuffled_widths) {
            Buffer<T> one(items * 16), two(items * 16);
            void* const pointers[] = {a.data(), b.data(), masks.data(), one.data(), two.data()};
            runner.run("k" + std::to_string(from) + "_" + std::to_string(to), pointers,
                       Range{{items, 1, 1}, {1, 1, 1}});
            for (size_t i = 0; i < items * to; ++i) {
                const size_t item = i / to, place = masks[i] % from, place2 = masks[i] % (2 * from);
                ASSERT_EQ(one[i], a[item * from + place]) << "shuffle of " << type << from << " to " << to;
                ASSERT_EQ(two[i], place2 < from ? a[item * from + place2] : b[item * from + place2 - from])
                    << "shuffle2 of " << type << from << " to " << to;
            }
        }
}

TEST(Shuffles, TakeTheElementsThatTheLowBitsOfTheMaskName) {
    for_all_types([](auto zero, const std::string& type) { expect_shuffled<decltype(zero)>(type); });
}

// Two, four and sixteen are as one, three and eight are.
constexpr int copied_widths[] = {1, 3, 8};

TEST(AsynchronousCopies, OfEveryTypeAndWidth_ArriveInBothDirections) {
    for_all_types([](auto zero, const std::string& type) {
        using T = decltype(zero);
        std::string source;
        for (const int width : copied_widths) {
            const std::string vector = type + width_suffix(width);
            source +=
                "kernel void copy" + width_suffix(width) + "(global " + vector + "* in, global " + vector +
                "* out) {\n    local " + vector + " box[16], sparse[16];\n    size_t g = 16 * get_group_id(0);\n" +
                "    prefetch(in + g, 16);\n    event_t e = async_work_group_copy(box, in + g, 16, 0);\n" +
                "    e = async_work_group_strided_copy(sparse, in + g, 8, 2, e);\n    wait_group_events(1, &e);\n" +
                "    event_t f[2];\n    f[0] = async_work_group_copy(out + 2 * g, box, 16, 0);\n" +
                "    f[1] = async_work_group_strided_copy(out + 2 * g + 16, sparse, 8, 2, 0);\n" +
                "    wait_group_events(2, f);\n}\n";
        }
        KernelRunner runner{source};
        for (const int width : copied_widths) {
            const size_t lanes = width == 3 ? 4 : static_cast<size_t>(width);
            constexpr size_t items = 48;
            Buffer<T> in = counted<T>(items * lanes), out(2 * items * lanes, 101);
            void* const pointers[] = {in.data(), out.data()};
            runner.run("copy" + width_suffix(width), pointers, Range{{items, 1, 1}, {16, 1, 1}});
            for (size_t i = 0; i < items; ++i)
                for (size_t k = 0; k < static_cast<size_t>(width); ++k) {
                    const size_t group = i / 16, place = i % 16;
                    ASSERT_EQ(out[(32 * group + place) * lanes + k], in[i * lanes + k]) << type << width;
                    // Every second element, to every second place.
                    const T strided = out[(32 * group + 16 + place) * lanes + k];
                    ASSERT_EQ(strided, place % 2 == 0 ? in[i * lanes + k] : T(101)) << type << width;
                }
        }
    });
}

} // namespace
} // namespace polder::math
