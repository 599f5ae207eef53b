// Every function of a sub-group, under uniform and divergent control, in whole and partial sub-groups, against loops over the
// work-items that take part.
#include "buffer.h"
#include "half.h"
#include "kernel_runner.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace polder {
namespace {

using test::KernelRunner;
using test::Range;

// As PTX, kernels have the one sub-group size of a warp.
const bool is_ptx = std::getenv("POLDER_TEST_PTX") != nullptr;
const unsigned size = is_ptx ? 32 : 8;
const char* const required_size =
    is_ptx ? "__attribute__((intel_reqd_sub_group_size(32))) " : "__attribute__((intel_reqd_sub_group_size(8))) ";

// Whole groups of whole sub-groups, one with a rest, a group smaller than a sub-group, and rows that sub-groups cross.
const Range ranges[] = {
    {{64, 1, 1}, {32, 1, 1}}, {{50, 1, 1}, {20, 1, 1}}, {{6, 1, 1}, {3, 1, 1}}, {{12, 6, 2}, {6, 3, 1}}};

struct SubGroup {
    std::vector<size_t> items;  // by sub-group local id; indices into the global range
    size_t size_max = size;  // get_max_sub_group_size
};

std::vector<SubGroup> sub_groups_of(const Range& range) {
    std::vector<SubGroup> result;
    const auto& g = range.global_size;
    const auto& l = range.local_size;
    for (uint64_t z0 = 0; z0 < g[2]; z0 += l[2])
        for (uint64_t y0 = 0; y0 < g[1]; y0 += l[1])
            for (uint64_t x0 = 0; x0 < g[0]; x0 += l[0]) {
                size_t count = 0;
                for (uint64_t z = z0; z < std::min(z0 + l[2], g[2]); ++z)
                    for (uint64_t y = y0; y < std::min(y0 + l[1], g[1]); ++y)
                        for (uint64_t x = x0; x < std::min(x0 + l[0], g[0]); ++x) {
                            if (count++ % size == 0)
                                result.push_back({{}, std::min<size_t>(size, l[0] * l[1] * l[2])});
                            result.back().items.push_back((z * g[1] + y) * g[0] + x);
                        }
            }
    return result;
}

size_t count_of(const Range& range) { return range.global_size[0] * range.global_size[1] * range.global_size[2]; }

// In the kernels: only these take part under divergent control.
bool is_active(size_t i) { return i % 3 != 1; }

template <class T>
struct Type {
    const char* name;
    T lowest, highest;
};
template <class T>
Type<T> type_of(const char* name) {
    if constexpr (is_floating<T>)
        return {name, -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
    return {name, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

template <class T>
struct Operation {
    const char* name;
    T identity;
    std::function<T(T, T)> combine;
    bool is_uniform_too;  // also without non_uniform
};

template <class T>
std::vector<Operation<T>> operations_of(const Type<T>& type) {
    std::vector<Operation<T>> list{{"add", T{0}, [](T a, T b) { return static_cast<T>(a + b); }, true},
                                   {"mul", T{1}, [](T a, T b) { return static_cast<T>(a * b); }, false},
                                   {"min", type.highest, [](T a, T b) { return std::min(a, b); }, true},
                                   {"max", type.lowest, [](T a, T b) { return std::max(a, b); }, true}};
    if constexpr (std::is_integral_v<T>) {
        list.push_back({"and", static_cast<T>(~T{0}), [](T a, T b) { return static_cast<T>(a & b); }, false});
        list.push_back({"or", T{0}, [](T a, T b) { return static_cast<T>(a | b); }, false});
        list.push_back({"xor", T{0}, [](T a, T b) { return static_cast<T>(a ^ b); }, false});
    }
    return list;
}

// Results of all functions of one type: row r of `out` has `count` elements.
template <class T>
class Arithmetic {
public:
    explicit Arithmetic(const Type<T>& type) : operations_(operations_of(type)) {
        source_ = std::string("kernel ") + required_size + "void k(global const " + type.name + "* in, global " +
                  type.name +
                  "* out) {\n    size_t i = get_global_linear_id();\n    size_t n = get_global_size(0) * "
                  "get_global_size(1) * get_global_size(2);\n    " +
                  type.name + " x = in[i];\n";
        for (const Operation<T>& operation : operations_)
            if (operation.is_uniform_too)
                add_scans("sub_group_", operation.name);
        source_ += "    if (i % 3 != 1) {\n";
        for (const Operation<T>& operation : operations_) {
            add_scans("sub_group_non_uniform_", operation.name);
            add(std::string("sub_group_clustered_reduce_") + operation.name + "(x, 4)");
        }
        source_ += "    }\n}\n";
    }

    void check() {
        KernelRunner runner{source_};
        for (const Range& range : ranges) {
            const size_t n = count_of(range);
            Buffer<T> in(n), out(rows_ * n);
            for (size_t i = 0; i < n; ++i)
                in[i] = static_cast<T>(static_cast<int64_t>(i * 37 % 5) - 2 + (i % 4 == 0 ? 3 : 0));
            void* const pointers[] = {in.data(), out.data()};
            runner.run("k", pointers, range);
            size_t row = 0;
            for (const Operation<T>& operation : operations_)
                if (operation.is_uniform_too)
                    check_scans(operation, range, in, out, row, [](size_t) { return true; });
            for (const Operation<T>& operation : operations_) {
                check_scans(operation, range, in, out, row, is_active);
                check_clusters(operation, range, in, out, row);
            }
            ASSERT_EQ(row, rows_);
        }
    }

private:
    void add(const std::string& call) {
        source_ += "    out[" + std::to_string(rows_++) + " * n + i] = " + call + ";\n";
    }
    void add_scans(const std::string& prefix, const char* name) {
        for (const char* kind : {"reduce_", "scan_inclusive_", "scan_exclusive_"})
            add(prefix + kind + name + "(x)");
    }

    void check_scans(const Operation<T>& operation, const Range& range, const Buffer<T>& in, const Buffer<T>& out,
                     size_t& row, const std::function<bool(size_t)>& takes_part) {
        const size_t n = in.size();
        for (const SubGroup& group : sub_groups_of(range)) {
            T before = operation.identity;
            for (const size_t i : group.items) {
                if (!takes_part(i))
                    continue;
                EXPECT_EQ(out[(row + 2) * n + i], before) << "exclusive " << operation.name << " of item " << i;
                before = operation.combine(before, in[i]);
                EXPECT_EQ(out[(row + 1) * n + i], before) << "inclusive " << operation.name << " of item " << i;
            }
            for (const size_t i : group.items)
                if (takes_part(i)) {
                    EXPECT_EQ(out[row * n + i], before) << "reduce " << operation.name << " of item " << i;
                }
        }
        row += 3;
    }
    void check_clusters(const Operation<T>& operation, const Range& range, const Buffer<T>& in, const Buffer<T>& out,
                        size_t& row) {
        const size_t n = in.size();
        for (const SubGroup& group : sub_groups_of(range))
            for (size_t lane = 0; lane < group.items.size(); ++lane) {
                if (!is_active(group.items[lane]))
                    continue;
                T expected = operation.identity;
                for (size_t other = lane / 4 * 4; other < std::min(lane / 4 * 4 + 4, group.items.size()); ++other)
                    if (is_active(group.items[other]))
                        expected = operation.combine(expected, in[group.items[other]]);
                EXPECT_EQ(out[row * n + group.items[lane]], expected) << "clustered " << operation.name;
            }
        ++row;
    }

    std::vector<Operation<T>> operations_;
    std::string source_;
    size_t rows_ = 0;
};

TEST(SubGroupArithmetic, OfIntegers_FoldsThoseThatTakePart) {
    Arithmetic<int8_t>(type_of<int8_t>("char")).check();
    Arithmetic<uint16_t>(type_of<uint16_t>("ushort")).check();
    Arithmetic<int32_t>(type_of<int32_t>("int")).check();
    Arithmetic<uint32_t>(type_of<uint32_t>("uint")).check();
    Arithmetic<int64_t>(type_of<int64_t>("long")).check();
    Arithmetic<uint64_t>(type_of<uint64_t>("ulong")).check();
}

TEST(SubGroupArithmetic, OfFloatingPointNumbers_FoldsThoseThatTakePart) {
    Arithmetic<Half>(type_of<Half>("half")).check();
    Arithmetic<float>(type_of<float>("float")).check();
    Arithmetic<double>(type_of<double>("double")).check();
}

// Shuffles: row r takes the value of work-item source(r, lane), where that one exists.
template <class T>
void expect_shuffles(const std::string& type) {
    KernelRunner runner{"kernel " + std::string(required_size) + "void k(global const " + type + "* in, global " +
                        type +
                        "* out) {\n"
                        "    size_t i = get_global_linear_id();\n"
                        "    size_t n = get_global_size(0) * get_global_size(1) * get_global_size(2);\n"
                        "    uint lane = get_sub_group_local_id();\n    " +
                        type + " x = in[i];\n" + R"(
    out[0 * n + i] = sub_group_shuffle(x, (lane * 5 + 3) % get_max_sub_group_size());
    out[1 * n + i] = sub_group_shuffle_xor(x, 3);
    out[2 * n + i] = sub_group_shuffle_up(x, 2);
    out[3 * n + i] = sub_group_shuffle_down(x, 1);
    out[4 * n + i] = sub_group_rotate(x, 3);
    out[5 * n + i] = sub_group_rotate(x, -2);
    out[6 * n + i] = sub_group_clustered_rotate(x, 1, 4);
    out[7 * n + i] = sub_group_broadcast(x, 1);
    out[8 * n + i] = sub_group_non_uniform_broadcast(x, 2);
    out[9 * n + i] = sub_group_broadcast_first(x);
    out[10 * n + i] = intel_sub_group_shuffle(x, lane ^ 1);
    out[11 * n + i] = intel_sub_group_shuffle_down(x, ()" +
                        type + R"()(x + 1), 3);
    out[12 * n + i] = intel_sub_group_shuffle_up(()" +
                        type + R"()(x + 1), x, 3);
    out[13 * n + i] = intel_sub_group_shuffle_xor(x, 2);
}
)"};
    constexpr size_t none = ~size_t{0};
    const auto source = [&](size_t row, size_t lane, size_t max) -> size_t {
        switch (row) {
        case 0: return (lane * 5 + 3) % max;
        case 1: return lane ^ 3;
        case 2: return lane < 2 ? none : lane - 2;
        case 3: return lane + 1;
        case 4: return (lane + 3) % max;
        case 5: return (lane + 2 * max - 2) % max;
        case 6: return (lane & ~size_t{3}) + (lane + 1) % 4;
        case 7: return 1;
        case 8: return 2;
        case 9: return 0;
        case 10: return lane ^ 1;
        case 11: return (lane + 3) % max;
        case 12: return (lane + 2 * max - 3) % max;
        default: return lane ^ 2;
        }
    };
    for (const Range& range : ranges) {
        const size_t n = count_of(range);
        Buffer<T> in(n), out(14 * n);
        for (size_t i = 0; i < n; ++i)
            in[i] = static_cast<T>(i + 1);
        void* const pointers[] = {in.data(), out.data()};
        runner.run("k", pointers, range);
        for (const SubGroup& group : sub_groups_of(range))
            for (size_t row = 0; row < 14; ++row)
                for (size_t lane = 0; lane < group.items.size(); ++lane) {
                    const size_t from = source(row, lane, group.size_max);
                    if (from >= group.items.size() || (group.size_max < 4 && row > 10))
                        continue;
                    const bool is_of_second = (row == 11 && lane + 3 >= group.size_max) || (row == 12 && lane < 3);
                    EXPECT_EQ(out[row * n + group.items[lane]],
                              static_cast<T>(in[group.items[from]] + (is_of_second ? 1 : 0)))
                        << type << " row " << row << " lane " << lane;
                }
    }
}

TEST(SubGroupShuffles, MoveValuesBetweenWorkItems) {
    expect_shuffles<uint8_t>("uchar");
    expect_shuffles<int16_t>("short");
    expect_shuffles<int32_t>("int");
    expect_shuffles<float>("float");
    expect_shuffles<Half>("half");
}

TEST(SubGroupShuffles, OfSixtyFourBitsAndVectors) {
    KernelRunner runner{std::string("kernel ") + required_size + R"(
void k(global const ulong* in, global ulong* out) {
    size_t i = get_global_id(0), n = get_global_size(0);
    uint lane = get_sub_group_local_id();
    out[i] = sub_group_shuffle(in[i], (lane * 3 + 1) & 7);
    out[n + i] = as_ulong(sub_group_rotate(as_double(in[i]), 1));
    short3 both = sub_group_broadcast((short3)(lane, lane + 10, lane + 20), 5);
    out[2 * n + i] = both.x + 100 * both.y + 10000 * both.z;
    uint4 four = intel_sub_group_shuffle((uint4)(lane, 1, 2, 3), lane ^ 1);
    out[3 * n + i] = four.x * 1000 + four.y * 100 + four.z * 10 + four.w;
}
)"};
    if (is_ptx)
        return;  // written for sub-groups of 8
    constexpr size_t n = 32;
    Buffer<uint64_t> in(n), out(4 * n);
    for (size_t i = 0; i < n; ++i)
        in[i] = 0x123456789abcdef1 * (i + 1);
    void* const pointers[] = {in.data(), out.data()};
    runner.run("k", pointers, Range{{n, 1, 1}, {n, 1, 1}});
    for (size_t i = 0; i < n; ++i) {
        const size_t first = i / size * size, lane = i % size;
        EXPECT_EQ(out[i], in[first + (lane * 3 + 1) % size]);
        EXPECT_EQ(out[n + i], in[first + (lane + 1) % size]);
        EXPECT_EQ(out[2 * n + i], 5U + 100 * 15 + 10000 * 25);
        EXPECT_EQ(out[3 * n + i], (lane ^ 1) * 1000 + 123);
    }
}

TEST(SubGroupBallots, AreBitsOfThoseThatTakePart) {
    for (const unsigned width : {4U, 8U, 16U, 32U, 64U}) {
        if (is_ptx && width != size)
            continue;
        KernelRunner runner{"kernel __attribute__((intel_reqd_sub_group_size(" + std::to_string(width) + R"()))
void k(global const int* in, global uint* out) {
    size_t i = get_global_id(0), n = get_global_size(0);
    uint lane = get_sub_group_local_id();
    if (i % 3 != 1) {
        uint4 b = sub_group_ballot(in[i]);
        out[i] = b.x;
        out[n + i] = b.y;
        out[2 * n + i] = b.z | b.w;
        out[3 * n + i] = sub_group_inverse_ballot(b);
        out[4 * n + i] = sub_group_ballot_bit_extract(b, (lane + 1) % get_max_sub_group_size());
        out[5 * n + i] = sub_group_ballot_bit_count(b);
        out[6 * n + i] = sub_group_ballot_inclusive_scan(b);
        out[7 * n + i] = sub_group_ballot_exclusive_scan(b);
        out[8 * n + i] = b.x | b.y ? sub_group_ballot_find_lsb(b) : 99;
        out[9 * n + i] = b.x | b.y ? sub_group_ballot_find_msb(b) : 99;
        out[10 * n + i] = sub_group_elect();
        out[11 * n + i] = sub_group_non_uniform_any(in[i]) * 2 + sub_group_non_uniform_all(in[i]);
        out[12 * n + i] = sub_group_non_uniform_all_equal(in[i]);
        out[13 * n + i] = sub_group_non_uniform_reduce_logical_xor(in[i]) + 2 * sub_group_clustered_reduce_logical_or(in[i], 2);
    }
    out[14 * n + i] = get_sub_group_eq_mask().x ^ get_sub_group_lt_mask().x ^ get_sub_group_le_mask().x;
    out[15 * n + i] = get_sub_group_ge_mask().y ^ get_sub_group_gt_mask().x;
    out[16 * n + i] = get_sub_group_size() + 100 * get_max_sub_group_size() + 10000 * get_num_sub_groups();
    out[17 * n + i] = get_sub_group_id() + 100 * lane + 10000 * get_enqueued_num_sub_groups();
    out[18 * n + i] = sub_group_any(in[i]) * 2 + sub_group_all(in[i] >= 0);
}
)"};
        constexpr size_t n = 150, local = 70;
        Buffer<int32_t> in(n);
        Buffer<uint32_t> out(19 * n);
        for (size_t i = 0; i < n; ++i)
            in[i] = i % 7 == 0 || i % 5 == 3 ? static_cast<int32_t>(i % 4) : 0;
        void* const pointers[] = {in.data(), out.data()};
        runner.run("k", pointers, Range{{n, 1, 1}, {local, 1, 1}});
        for (size_t i = 0; i < n; ++i) {
            const size_t group_first = i / local * local, group_size = std::min(local, n - group_first);
            const size_t first = group_first + (i - group_first) / width * width;
            const size_t end = std::min(first + width, group_first + group_size), lane = i - first;
            uint64_t bits = 0, active = 0;
            bool is_same = true, is_odd = false;
            for (size_t k = first; k < end; ++k)
                if (is_active(k)) {
                    active |= uint64_t{1} << (k - first);
                    bits |= uint64_t{in[k] != 0} << (k - first);
                    is_odd ^= in[k] != 0;
                    is_same &= in[k] == in[first + static_cast<size_t>(std::countr_zero(active))];
                }
            const auto row = [&](size_t r) { return out[r * n + i]; };
            const uint64_t below = (uint64_t{1} << lane) - 1, up_to = below * 2 + 1;
            if (is_active(i)) {
                EXPECT_EQ(row(0), static_cast<uint32_t>(bits)) << width << " item " << i;
                EXPECT_EQ(row(1), static_cast<uint32_t>(bits >> 32));
                EXPECT_EQ(row(2), 0U);
                EXPECT_EQ(row(3), bits >> lane & 1);
                EXPECT_EQ(row(4), bits >> ((lane + 1) % width) & 1);
                EXPECT_EQ(row(5), std::popcount(bits));
                EXPECT_EQ(row(6), std::popcount(bits & up_to));
                EXPECT_EQ(row(7), std::popcount(bits & below));
                EXPECT_EQ(row(8), bits ? std::countr_zero(bits) : 99);
                EXPECT_EQ(row(9), bits ? 63 - std::countl_zero(bits) : 99);
                EXPECT_EQ(row(10), lane == static_cast<size_t>(std::countr_zero(active)));
                EXPECT_EQ(row(11), (bits != 0) * 2U + (bits == active));
                EXPECT_EQ(row(12), is_same);
                const uint64_t pair = bits >> (lane & ~size_t{1}) & 3;
                EXPECT_EQ(row(13), is_odd + 2U * (pair != 0));
            }
            const uint64_t all = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
            EXPECT_EQ(row(14), static_cast<uint32_t>((uint64_t{1} << lane) ^ below ^ up_to));
            EXPECT_EQ(row(15), static_cast<uint32_t>((all & ~below) >> 32) ^ static_cast<uint32_t>(all & ~up_to));
            const auto count = [&](size_t items) { return (items + width - 1) / width; };
            EXPECT_EQ(row(16), end - first + 100 * width + 10000 * count(group_size));
            EXPECT_EQ(row(17), (first - group_first) / width + 100 * lane + 10000 * count(local));
            bool is_any = false;
            for (size_t k = first; k < end; ++k)
                is_any |= in[k] != 0;
            EXPECT_EQ(row(18), is_any * 2U + 1);
        }
    }
}

TEST(SubGroupBlocks, ReadsAndWrites_PlaceOneElementPerWorkItemAndRow) {
    KernelRunner runner{std::string("kernel ") + required_size + R"(
void k(global const uint* in, global uint* out, global const ushort* in16, global ushort* out16,
       global const uchar* in8, global uchar* out8, global const ulong* in64, global ulong* out64) {
    size_t first = get_group_id(0) * 64 + get_sub_group_id() * 32;
    uint4 x = intel_sub_group_block_read4(in + first);
    intel_sub_group_block_write4(out + first, x.wzyx);
    intel_sub_group_block_write_us2(out16 + first / 2, intel_sub_group_block_read_us2(in16 + first / 2));
    intel_sub_group_block_write_uc16(out8 + first * 4, intel_sub_group_block_read_uc16(in8 + first * 4) + (uchar)1);
    intel_sub_group_block_write_ul(out64 + first / 4, intel_sub_group_block_read_ul(in64 + first / 4) * 3);
}
)"};
    if (is_ptx)
        return;  // written for sub-groups of 8
    constexpr size_t n = 128;  // words; 32 work-items in groups of 16
    Buffer<uint32_t> in(n), out(n);
    Buffer<uint16_t> in16(n / 2), out16(n / 2);
    Buffer<uint8_t> in8(4 * n), out8(4 * n);
    Buffer<uint64_t> in64(n / 4), out64(n / 4);
    for (size_t i = 0; i < 4 * n; ++i) {
        in8[i] = static_cast<uint8_t>(i * 7);
        in[i % n] = static_cast<uint32_t>(i * 1000003);
        in16[i % (n / 2)] = static_cast<uint16_t>(i * 77);
        in64[i % (n / 4)] = i << 33 | i;
    }
    void* const pointers[] = {in.data(),  out.data(),  in16.data(), out16.data(),
                              in8.data(), out8.data(), in64.data(), out64.data()};
    runner.run("k", pointers, Range{{32, 1, 1}, {16, 1, 1}});
    for (size_t i = 0; i < n; ++i)
        EXPECT_EQ(out[i], in[i / 32 * 32 + (3 - i % 32 / 8) * 8 + i % 8]) << i;
    EXPECT_EQ(out16, in16);
    for (size_t i = 0; i < 4 * n; ++i)
        EXPECT_EQ(out8[i], static_cast<uint8_t>(in8[i] + 1)) << i;
    for (size_t i = 0; i < n / 4; ++i)
        EXPECT_EQ(out64[i], in64[i] * 3) << i;
}

// Atomic operations, divisions, a struct-valued exchange and a private array under divergent control around sub-group functions.
TEST(SubGroupControl, LanesComputeWhatWorkItemsCompute) {
    KernelRunner runner{std::string("kernel ") + required_size + R"(
void k(global const uint* in, global uint* out, global volatile uint* total) {
    size_t i = get_global_id(0);
    uint x = in[i], sum = 0, a[4] = {x, x + 1, x + 2, x + 3};
    for (uint round = 0; round < x % 5; ++round) {
        if (x % 3 == 0 && round == 2)
            break;
        if (x % 7 == 1)
            continue;
        sum += sub_group_non_uniform_reduce_add(a[(x + round) & 3]);
        uint expected = *total;
        while (atomic_cmpxchg(total, expected, expected + 1) != expected)
            expected = *total;
    }
    if (sub_group_any(sum > 20))
        sum += 100 / (x % 4 + 1);
    out[i] = sum;
}
)"};
    constexpr size_t n = 40;
    Buffer<uint32_t> in(n), out(n), total(1);
    for (size_t i = 0; i < n; ++i)
        in[i] = static_cast<uint32_t>(i * i % 23);
    void* const pointers[] = {in.data(), out.data(), total.data()};
    const Range range{{n, 1, 1}, {20, 1, 1}};
    runner.run("k", pointers, range);
    uint32_t expected_total = 0;
    for (const SubGroup& group : sub_groups_of(range)) {
        std::vector<uint32_t> sums(n);
        for (uint32_t round = 0; round < 5; ++round) {
            uint32_t sum = 0;
            std::vector<size_t> together;
            for (const size_t i : group.items) {
                const uint32_t x = in[i];
                const bool is_out = round >= x % 5 || (x % 3 == 0 && round >= 2) || x % 7 == 1;
                if (is_out)
                    continue;
                together.push_back(i);
                sum += x + ((x + round) & 3);
            }
            for (const size_t i : together)
                sums[i] += sum;
            expected_total += static_cast<uint32_t>(together.size());
        }
        bool is_any = false;
        for (const size_t i : group.items)
            is_any |= sums[i] > 20;
        for (const size_t i : group.items)
            EXPECT_EQ(out[i], sums[i] + (is_any ? 100 / (in[i] % 4 + 1) : 0)) << i;
    }
    EXPECT_EQ(total[0], expected_total);
}

}  // namespace
}  // namespace polder
