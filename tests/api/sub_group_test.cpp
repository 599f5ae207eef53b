// Sub-groups on every device of the context, whatever their size: where each work-item is, and what the functions of all extensions
// return, in whole and in smaller work-groups, under uniform and divergent control.
#include "support/fixture.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace polder::test {
namespace {

constexpr const char* source = R"(
#define ROW(VALUE) out[row++ * n + i] = (int)(VALUE)
kernel void k(global const int* in, global int* out) {
    size_t n = get_global_size(0) * get_global_size(1), i = get_global_linear_id();
    int row = 0, x = in[i];
    uint size = get_sub_group_size();
    ROW(get_group_id(1) * get_num_groups(0) + get_group_id(0));
    ROW(get_sub_group_id());
    ROW(get_sub_group_local_id());
    ROW(size);
    ROW(get_num_sub_groups());
    ROW(sub_group_reduce_add(x));
    ROW(sub_group_reduce_min((char)x));
    ROW(sub_group_reduce_max((float)x));
    ROW(sub_group_scan_inclusive_max((long)x));
    ROW(sub_group_scan_exclusive_add((double)x));
    ROW(sub_group_broadcast(x, size - 1));
    ROW(sub_group_shuffle(x, size - 1 - get_sub_group_local_id()));
    ROW(sub_group_shuffle((long)x << 33, 0) >> 33);
    ROW(sub_group_all(x > -100) * 10 + sub_group_any(x == 3));
    sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
    ROW(sub_group_ballot_bit_count(sub_group_ballot(x & 1)));
    if (i % 3 != 1) {
        ROW(sub_group_non_uniform_reduce_add(x));
        ROW(sub_group_non_uniform_scan_inclusive_max((short)x));
        ROW(sub_group_non_uniform_scan_exclusive_add(x));
        ROW(sub_group_clustered_reduce_add(x, 4));
        ROW(sub_group_non_uniform_reduce_xor(x));
        ROW(sub_group_elect());
        ROW(sub_group_broadcast_first(x));
        ROW(sub_group_non_uniform_reduce_mul((float)(x % 2 ? 1 : 2)));
    }
}
)";
enum Row : size_t {
    group,
    sub_group,
    lane,
    size,
    count,
    sum,
    smallest,
    largest,
    maxima,
    sums_before,
    last,
    reversed,
    first,
    votes,
    odd,
    active_sum,
    active_maxima,
    active_sums_before,
    cluster_sum,
    active_xor,
    elected,
    active_first,
    active_product,
    row_count,
};

class SubGroups : public ContextTest {
protected:
    [[nodiscard]] static bool has_sub_groups(cl_device_id device) {
        std::string names(8192, '\0');
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, names.size(), names.data(), nullptr), CL_SUCCESS);
        return names.find("cl_khr_subgroup_non_uniform_arithmetic") != std::string::npos;
    }
    void SetUp() override {
        ContextTest::SetUp();
        if (!std::ranges::all_of(devices, has_sub_groups))
            GTEST_SKIP() << "a device has no sub-groups";
        program = build(source, "-cl-std=CL3.0");
    }
    OwnedProgram program;
};

struct Member {
    size_t item;
    int x;
};

class Check {
public:
    Check(const std::vector<cl_int>& in, const std::vector<cl_int>& out) : in_(in), out_(out) {}

    void all() const {
        std::map<std::pair<int, int>, std::vector<Member>> sub_groups;
        std::map<int, int> counts;
        for (size_t i = 0; i < in_.size(); ++i) {
            sub_groups[{at(group, i), at(sub_group, i)}].push_back({i, in_[i]});
            counts[at(group, i)] = std::max(counts[at(group, i)], at(sub_group, i) + 1);
        }
        for (auto& [place, members] : sub_groups) {
            std::ranges::sort(members, {}, [&](const Member& member) { return at(lane, member.item); });
            for (size_t i = 0; i < members.size(); ++i) {
                ASSERT_EQ(at(lane, members[i].item), static_cast<int>(i));
                ASSERT_EQ(at(size, members[i].item), static_cast<int>(members.size()));
                ASSERT_EQ(at(count, members[i].item), counts[place.first]);
            }
            of_sub_group(members);
            std::vector<Member> active;
            std::ranges::copy_if(members, std::back_inserter(active), [](const Member& m) { return m.item % 3 != 1; });
            of_active(active);
        }
    }

private:
    [[nodiscard]] int at(Row row, size_t item) const { return out_[row * in_.size() + item]; }
    void expect(Row row, const Member& member, int value) const {
        EXPECT_EQ(at(row, member.item), value) << "row " << row << ", work-item " << member.item;
    }

    void of_sub_group(const std::vector<Member>& members) const {
        int total = 0, low = members[0].x, high = members[0].x, odd_ones = 0, has_three = 0;
        for (const Member& member : members) {
            low = std::min(low, member.x);
            expect(sums_before, member, total);
            total += member.x;
            high = std::max(high, member.x);
            expect(maxima, member, high);
            odd_ones += member.x & 1;
            has_three |= member.x == 3;
        }
        for (size_t i = 0; i < members.size(); ++i) {
            const Member& member = members[i];
            expect(sum, member, total);
            expect(smallest, member, low);
            expect(largest, member, high);
            expect(last, member, members.back().x);
            expect(reversed, member, members[members.size() - 1 - i].x);
            expect(first, member, members[0].x);
            expect(votes, member, 10 + has_three);
            expect(odd, member, odd_ones);
        }
    }

    void of_active(const std::vector<Member>& members) const {
        int total = 0, bits = 0, product = 1, high = -1000;
        std::map<int, int> clusters;
        for (const Member& member : members) {
            expect(active_sums_before, member, total);
            total += member.x;
            bits ^= member.x;
            high = std::max(high, member.x);
            expect(active_maxima, member, high);
            clusters[at(lane, member.item) / 4] += member.x;
            product *= member.x % 2 ? 1 : 2;
        }
        for (const Member& member : members) {
            expect(active_sum, member, total);
            expect(active_xor, member, bits);
            expect(cluster_sum, member, clusters[at(lane, member.item) / 4]);
            expect(elected, member, member.item == members[0].item ? 1 : 0);
            expect(active_first, member, members[0].x);
            // Products of up to 2^24 are exact.
            if (product <= 1 << 24)
                expect(active_product, member, product);
        }
    }

    const std::vector<cl_int>& in_;
    const std::vector<cl_int>& out_;
};

// Sizes of the range and of the work-groups: whole ones, partial sub-groups, smaller work-groups at both ends.
struct Shape {
    size_t global[2];
    size_t local[2];
};

TEST_F(SubGroups, OfAnyWorkGroup_ReturnWhatTheirWorkItemsGave) {
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        for (const Shape& shape :
             {Shape{{256, 1}, {64, 1}}, Shape{{300, 1}, {100, 1}}, Shape{{90, 1}, {64, 1}}, Shape{{50, 7}, {16, 4}},
              Shape{{11, 13}, {8, 8}}, Shape{{5, 1}, {5, 1}}, Shape{{3, 3}, {1, 1}}}) {
            SCOPED_TRACE(std::to_string(shape.global[0]) + " of " + std::to_string(shape.local[0]));
            const size_t n = shape.global[0] * shape.global[1];
            std::vector<cl_int> in(n);
            for (size_t i = 0; i < n; ++i)
                in[i] = static_cast<cl_int>(i * 37 % 23) - 9;
            OwnedMem from = make_buffer(n * sizeof(cl_int)), to = make_buffer(n * row_count * sizeof(cl_int));
            write(from, in);
            write(to, std::vector<cl_int>(n * row_count, 0));
            OwnedKernel kernel = make_kernel(program, "k");
            ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), from.in()), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
            ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 2, nullptr, shape.global, shape.local, 0, nullptr, nullptr),
                      CL_SUCCESS);
            ASSERT_EQ(clFinish(on), CL_SUCCESS);
            Check(in, read<cl_int>(to, n * row_count, on)).all();
        }
    }
}

// A private array that is read as a vector and by elements, in a kernel whose work-items are the lanes of a vector. The loop is not
// unrolled, so that the array stays in memory.
constexpr const char* vectors_in_private_memory = R"(
kernel void k(global const int* in, global int* out) {
    size_t i = get_global_id(0);
    union { int4 whole; int of[4]; } a, b, difference, result;
    for (int n = 0; n < 4; ++n) a.of[n] = in[4 * i + n];
    sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
    for (int n = 0; n < 4; ++n) b.of[n] = in[4 * i + 3 - n];
    difference.whole = a.whole - b.whole;
    #pragma nounroll
    for (int n = 0; n < 4; ++n) {
        if (difference.of[n] > 100)
            result.of[n] = 1;
        else
            result.of[n] = a.of[n] < b.of[n] ? a.of[n] * 3 : b.of[n] + difference.of[n];
    }
    for (int n = 0; n < 4; ++n) out[4 * i + n] = result.of[n];
}
)";

TEST_F(SubGroups, VectorsInPrivateMemory_AreReadByElementsToo) {
    constexpr size_t global = 100, local = 20;  // the last sub-group of a work-group is not whole
    std::vector<cl_int> in(4 * global), expected(in.size());
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<cl_int>(i * 7919 % 311);
    for (size_t i = 0; i < in.size(); ++i) {
        const cl_int a = in[i], b = in[i / 4 * 4 + 3 - i % 4];
        expected[i] = a - b > 100 ? 1 : a < b ? a * 3 : a;
    }
    OwnedProgram vectors = build(vectors_in_private_memory, "-cl-std=CL3.0");
    OwnedKernel kernel = make_kernel(vectors, "k");
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem from = make_buffer(in.size() * sizeof(cl_int)), to = make_buffer(in.size() * sizeof(cl_int));
        write(from, in);
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), from.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), to.in()), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<cl_int>(to, in.size(), on), expected);
    }
}

}  // namespace
}  // namespace polder::test
