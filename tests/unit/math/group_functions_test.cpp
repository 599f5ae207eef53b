// Functions of whole work-groups and sub-groups, asynchronous copies, address space queries and printf, in kernels.
#include "buffer.h"
#include "half.h"
#include "kernel_runner.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <pthread.h>
#include <vector>

namespace polder {
namespace {

using test::KernelRunner;
using test::Range;

// Work-items in the order of their linear local id, group by group, as indices into the global range.
std::vector<std::vector<size_t>> groups_of(const Range& range) {
    std::vector<std::vector<size_t>> groups;
    const auto& g = range.global_size;
    const auto& l = range.local_size;
    for (uint64_t z0 = 0; z0 < g[2]; z0 += l[2])
        for (uint64_t y0 = 0; y0 < g[1]; y0 += l[1])
            for (uint64_t x0 = 0; x0 < g[0]; x0 += l[0]) {
                groups.emplace_back();
                for (uint64_t z = z0; z < std::min(z0 + l[2], g[2]); ++z)
                    for (uint64_t y = y0; y < std::min(y0 + l[1], g[1]); ++y)
                        for (uint64_t x = x0; x < std::min(x0 + l[0], g[0]); ++x)
                            groups.back().push_back((z * g[1] + y) * g[0] + x);
            }
    return groups;
}

const Range ranges[] = {
    {{64, 1, 1}, {64, 1, 1}}, {{1, 1, 1}, {1, 1, 1}}, {{1000, 1, 1}, {96, 1, 1}},
    {{30, 7, 1}, {8, 4, 1}},  {{9, 5, 7}, {4, 2, 3}},
};

template <class T>
struct Collective {
    const char* type;
    T lowest, highest;
};

template <class T>
std::string collectives_source(const Collective<T>& collective, const std::string& scope) {
    const std::string t = collective.type;
    std::string source;
    int result = 0;
    for (const std::string function : {"reduce", "scan_inclusive", "scan_exclusive"}) {
        source += "kernel void " + function + "(global const " + t + "* a, global " + t +
                  "* out) {\n    size_t i = get_global_linear_id(), n = get_global_size(0) * get_global_size(1) * "
                  "get_global_size(2);\n    " +
                  t + " x = a[i];\n";
        for (const char* operation : {"add", "min", "max"})
            source += "    out[n * " + std::to_string(result++) + " + i] = " + scope + "_" + function + "_" +
                      operation + "(x);\n";
        source += "}\n";
    }
    return source;
}

template <class T>
void expect_collectives(const Collective<T>& collective, const std::string& scope) {
    KernelRunner runner{collectives_source(collective, scope)};
    for (const Range& range : ranges) {
        const size_t n = range.global_size[0] * range.global_size[1] * range.global_size[2];
        Buffer<T> values(n), out(9 * n);
        for (size_t i = 0; i < n; ++i)
            values[i] = static_cast<T>(static_cast<int64_t>(i * 7919 % 101) - 50);  // sums are exact in every type
        void* const pointers[] = {values.data(), out.data()};
        for (const char* kernel : {"reduce", "scan_inclusive", "scan_exclusive"})
            runner.run(kernel, pointers, range);
        const auto add = [](T a, T b) { return static_cast<T>(a + b); };
        const auto min = [](T a, T b) { return std::min(a, b); };
        const auto max = [](T a, T b) { return std::max(a, b); };
        const auto check = [&](size_t operation, T identity, auto combine) {
            for (const std::vector<size_t>& group : groups_of(range)) {
                T before = identity;
                for (const size_t item : group) {
                    ASSERT_EQ(out[n * (6 + operation) + item], before)
                        << scope << " exclusive " << operation << " " << collective.type;
                    before = combine(before, values[item]);
                    ASSERT_EQ(out[n * (3 + operation) + item], before)
                        << scope << " inclusive " << operation << " " << collective.type;
                }
                for (const size_t item : group)
                    ASSERT_EQ(out[n * operation + item], before)
                        << scope << " reduce " << operation << " " << collective.type;
            }
        };
        check(0, T{0}, add);
        check(1, collective.highest, min);
        check(2, collective.lowest, max);
    }
}

template <class T>
Collective<T> collective_of(const char* type) {
    if constexpr (is_floating<T>)
        return {type, -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
    return {type, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

TEST(WorkGroupCollectives, ReductionsAndScans_FollowTheLinearLocalId) {
    expect_collectives(collective_of<int32_t>("int"), "work_group");
    expect_collectives(collective_of<uint32_t>("uint"), "work_group");
    expect_collectives(collective_of<int64_t>("long"), "work_group");
    expect_collectives(collective_of<uint64_t>("ulong"), "work_group");
    expect_collectives(collective_of<Half>("half"), "work_group");
    expect_collectives(collective_of<float>("float"), "work_group");
    expect_collectives(collective_of<double>("double"), "work_group");
}

TEST(WorkGroupCollectives, AllAnyAndBroadcast_AreTheSameForEveryWorkItem) {
    KernelRunner runner{R"(
kernel void votes(global const int* a, global int* out) {
    size_t i = get_global_linear_id();
    global int* r = out + 3 * i;
    r[0] = work_group_all(a[i] > 0);
    r[1] = work_group_any(a[i] > 90);
    r[2] = work_group_broadcast(a[i], 1, 0, 0);
}
)"};
    for (const Range& range : {Range{{100, 1, 1}, {32, 1, 1}}, Range{{8, 6, 1}, {4, 4, 1}}}) {
        const size_t n = range.global_size[0] * range.global_size[1];
        Buffer<int32_t> values(n), out(3 * n);
        for (size_t i = 0; i < n; ++i)
            values[i] = static_cast<int32_t>(i * 37 % 100) - (i % 29 == 0 ? 100 : 0);
        void* const pointers[] = {values.data(), out.data()};
        runner.run("votes", pointers, range);
        for (const std::vector<size_t>& group : groups_of(range)) {
            const int all = std::all_of(group.begin(), group.end(), [&](size_t i) { return values[i] > 0; });
            const int any = std::any_of(group.begin(), group.end(), [&](size_t i) { return values[i] > 90; });
            for (size_t k = 0; k < group.size(); ++k) {
                const Buffer<int32_t> expected = {all, any, values[group[1]]};
                const auto first = out.begin() + static_cast<long>(3 * group[k]);
                EXPECT_EQ(Buffer<int32_t>(first, first + 3), expected) << "item " << group[k];
            }
        }
    }
}

TEST(AsynchronousCopies, ThereAndBack_ReverseWithinEachGroup) {
    KernelRunner runner{R"(
kernel void reverse(global const int3* a, global float* strided, global int3* out) {
    local int3 box[32];
    local float floats[32];
    size_t g = get_group_id(0) * 32, l = get_local_id(0);
    event_t e = async_work_group_copy(box, a + g, 32, 0);
    e = async_work_group_strided_copy(floats, strided + 2 * g, 32, 2, e);
    wait_group_events(1, &e);
    int3 x = box[31 - l];
    float f = floats[31 - l];
    barrier(CLK_LOCAL_MEM_FENCE);
    box[l] = x + (int3)(convert_int(f));
    floats[l] = -f;
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t back[2];
    back[0] = async_work_group_copy(out + g, box, 32, 0);
    back[1] = async_work_group_strided_copy(strided + 2 * g + 1, floats, 32, 2, 0);
    wait_group_events(2, back);
}
)"};
    constexpr size_t n = 128;
    Buffer<int32_t> in(4 * n), out(4 * n);
    Buffer<float> strided(2 * n);
    for (size_t i = 0; i < n; ++i) {
        strided[2 * i] = static_cast<float>(i);
        for (size_t k = 0; k < 3; ++k)
            in[4 * i + k] = static_cast<int32_t>(1000 * k + i);
    }
    void* const pointers[] = {in.data(), strided.data(), out.data()};
    runner.run("reverse", pointers, Range{{n, 1, 1}, {32, 1, 1}});
    for (size_t i = 0; i < n; ++i) {
        const size_t mirror = i / 32 * 32 + 31 - i % 32;
        for (size_t k = 0; k < 3; ++k)
            ASSERT_EQ(out[4 * i + k], in[4 * mirror + k] + static_cast<int32_t>(mirror));
        ASSERT_EQ(strided[2 * i + 1], -static_cast<float>(mirror));
    }
}

constexpr const char* find_spaces = R"(
int spaces(void* p) {
    return (to_global(p) != 0) + 2 * (to_local(p) != 0) + 4 * (to_private(p) != 0) + 8 * (get_fence(p) == CLK_LOCAL_MEM_FENCE);
}
kernel void find(global int* out) {
    local int shared[16];
    int own[4] = {1, 2, 3, (int)get_global_id(0)};
    size_t i = get_global_id(0);
    shared[get_local_id(0)] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[4 * i] = spaces(out + i);
    out[4 * i + 1] = spaces(shared + get_local_id(0));
    out[4 * i + 2] = spaces(own + i % 4);
    int* p = i % 2 ? (int*)own : (int*)shared;
    barrier(CLK_LOCAL_MEM_FENCE);
    own[1] += i;
    out[4 * i + 3] = spaces(p);
}
)";

void expect_spaces(KernelRunner& runner, int32_t* out) {
    void* const pointers[] = {out};
    runner.run("find", pointers, Range{{64, 1, 1}, {16, 1, 1}});
    for (size_t i = 0; i < 64; ++i) {
        EXPECT_EQ(out[4 * i], 1) << "global " << i;
        EXPECT_EQ(out[4 * i + 1], 2 + 8) << "local " << i;
        EXPECT_EQ(out[4 * i + 2], 4) << "private " << i;
        EXPECT_EQ(out[4 * i + 3], i % 2 ? 4 : 2 + 8) << "either " << i;
    }
}

TEST(AddressSpaces, GenericPointers_AreFoundInTheirSpace) {
    KernelRunner runner{find_spaces};
    Buffer<int32_t> on_heap(4 * 64);
    // Global memory right above the kernel's frames, as it is beside the stacks of threads.
    std::array<int32_t, 4 * 64> on_stack{};
    for (int32_t* const out : {on_heap.data(), on_stack.data()})
        expect_spaces(runner, out);
}

// What another work-group left in global memory, here made from numbers: no memory of the group that asks.
TEST(AddressSpaces, PointersOfOtherGroups_AreInTheSpaceOfTheirType) {
    KernelRunner runner{R"(
        typedef struct { global int* g; local int* l; private int* p; } Pointers;
        kernel void find(global int* out, global ulong* numbers) {
            size_t i = get_global_id(0);
            global Pointers* all = (global Pointers*)numbers;
            out[i] = (to_global(all[i].g) == all[i].g) + 2 * (to_local(all[i].l) == all[i].l) +
                     4 * (to_private(all[i].p) == all[i].p) + 8 * (to_local(all[i].g) == 0) + 16 * (to_private(all[i].l) == 0) +
                     32 * (to_global(all[i].p) == 0) + 64 * (get_fence(all[i].l) == CLK_LOCAL_MEM_FENCE) +
                     128 * (get_fence(all[i].g) == CLK_GLOBAL_MEM_FENCE) + 256 * (to_local((local int*)0) == 0);
        })"};
    constexpr size_t n = 64;
    Buffer<int32_t> out(n);
    Buffer<uint64_t> numbers(3 * n);
    for (size_t i = 0; i < 3 * n; ++i)
        numbers[i] = 4096 + 64 * i;
    void* const pointers[] = {out.data(), numbers.data()};
    runner.run("find", pointers, Range{{n, 1, 1}, {16, 1, 1}});
    for (size_t i = 0; i < n; ++i)
        EXPECT_EQ(out[i], 511) << i;
}

TEST(AddressSpaces, GlobalMemoryRightBelowASmallStack_IsGlobal) {
    KernelRunner runner{find_spaces};
    std::vector<int32_t> warm_up(4 * 64);
    expect_spaces(runner, warm_up.data());  // compiles, which the small stack is too small for
    struct Block {
        alignas(4096) int32_t out[1024];
        alignas(4096) std::byte stack[size_t{256} << 10];
        KernelRunner* runner;
    };
    const auto block = std::make_unique<Block>();
    block->runner = &runner;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setstack(&attributes, block->stack, sizeof block->stack), 0);
    pthread_t thread{};
    const auto body = [](void* data) -> void* {
        auto* const of = static_cast<Block*>(data);
        expect_spaces(*of->runner, of->out);
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, body, block.get()), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

TEST(PrintfInKernels, EveryKindOfArgument_ArrivesAsWritten) {
    KernelRunner runner{R"(
kernel void speak(global int* out) {
    char4 c = (char4)(1, -2, 3, 4);
    float3 f = (float3)(1.5f, 2.25f, -3.0f);
    double2 d = (double2)(0.125, 1e100);
    out[0] = printf("%d %s %v4hhd|%.2v3hlf|%v2lg %ld %c %5.1f %u%%\n", -7, "word", c, f, d, 5000000000L, 'x', 2.25f, 42u);
    out[1] = printf("%v8hd %#v2hlx %v16hhu\n", (short8)(-1), (uint2)(10, 11), (uchar16)(200));
    out[2] = printf("plain\n");
    half4 h = (half4)(0.5h, -65504.0h, 0x1p-24h, 0.1h);
    out[3] = printf("%v4hg %.3f %v2ha|%v3hf\n", h, h.w, h.xy, h.xyz);
}
)"};
    Buffer<int32_t> out(4, 99);
    void* const pointers[] = {out.data()};
    runner.run("speak", pointers, 1);
    EXPECT_EQ(out, (Buffer<int32_t>{0, 0, 0, 0}));
    EXPECT_EQ(runner.printed(),
              "-7 word 1,-2,3,4|1.50,2.25,-3.00|0.125,1e+100 5000000000 x   2.2 42%\n"
              "-1,-1,-1,-1,-1,-1,-1,-1 0xa,0xb 200,200,200,200,200,200,200,200,200,200,200,200,200,200,200,200\n"
              "plain\n"
              "0.5,-65504,5.96046e-08,0.0999756 0.100 0x1p-1,-0x1.ffcp+15|0.500000,-65504.000000,0.000000\n");
}

} // namespace
} // namespace polder
