// Atomic functions in kernels: every operation, type, order and scope compiles and does what it says.
#include "buffer.h"
#include "half.h"
#include "kernel_runner.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace polder {
namespace {

using test::KernelRunner;
using test::Range;

const char* const orders[] = {"memory_order_relaxed", "memory_order_acquire", "memory_order_release",
                              "memory_order_acq_rel", "memory_order_seq_cst"};
const char* const scopes[] = {"memory_scope_work_group", "memory_scope_device", "memory_scope_all_svm_devices"};

// Every work-item adds to, ands, ors, ... shared objects in `space`, with each order and scope in turn.
std::string updates_source(const std::string& type, const std::string& object) {
    std::string body;
    for (const std::string order : orders)
        for (const std::string scope : scopes) {
            const std::string how = ", " + order + ", " + scope + ");\n";
            body += "    atomic_fetch_add_explicit(o + 0, (" + type + ")1" + how;
            body += "    atomic_fetch_sub_explicit(o + 1, (" + type + ")1" + how;
            body += "    atomic_fetch_or_explicit(o + 2, (" + type + ")1 << (i % 31)" + how;
            body += "    atomic_fetch_xor_explicit(o + 3, (" + type + ")i" + how;
            body += "    atomic_fetch_and_explicit(o + 4, ~((" + type + ")1 << (i % 31))" + how;
            body += "    atomic_fetch_min_explicit(o + 5, (" + type + ")i + 5" + how;
            body += "    atomic_fetch_max_explicit(o + 6, (" + type + ")i + 5" + how;
        }
    const std::string updates = "#define UPDATES(SPACE) void updates_##SPACE(volatile SPACE " + object +
                                "* o, size_t i)\nUPDATES(global) {\n" + body + "}\nUPDATES(local) {\n" + body +
                                "}\nUPDATES(generic) {\n" + body + "}\n";
    return updates + "kernel void run(global " + type + "* out) {\n    local " + object +
           " box[7];\n    size_t i = get_global_id(0);\n"
           "    if (get_local_id(0) == 0) for (int k = 0; k < 7; ++k) atomic_init(box + k, out[k]);\n    "
           "barrier(CLK_LOCAL_MEM_FENCE);\n"
           "    updates_global((global " +
           object + "*)(out + 7), i);\n    updates_local(box, i);\n    updates_generic((global " + object +
           "*)(out + 14), i);\n    barrier(CLK_LOCAL_MEM_FENCE);\n"
           "    if (get_local_id(0) == 0) for (int k = 0; k < 7; ++k) out[k] = atomic_load(box + k);\n}\n";
}

template <class T>
void expect_updates(const std::string& type, const std::string& object) {
    KernelRunner runner{updates_source(type, object)};
    constexpr T rounds = 15, items = 60;
    const Buffer<T> start = {0, 0, 0, 0, static_cast<T>(-1), 1000, 0};
    Buffer<T> out;
    for (int place = 0; place < 3; ++place)
        out.insert(out.end(), start.begin(), start.end());
    void* const pointers[] = {out.data()};
    runner.run("run", pointers, Range{{items, 1, 1}, {items, 1, 1}});
    T all_xor = 0;
    for (T i = 0; i < items; ++i)
        all_xor ^= i;  // an odd number of rounds leaves it once
    const T bits = (T{1} << 31 << 0) - 1;
    const Buffer<T> expected = {rounds * items,
                                static_cast<T>(-rounds * items),
                                static_cast<T>(bits & 0x7fffffff),
                                all_xor,
                                static_cast<T>(~static_cast<T>(0x7fffffff)),
                                5,
                                items - 1 + 5};
    for (int place = 0; place < 3; ++place)
        for (size_t k = 0; k < 7; ++k)
            EXPECT_EQ(out[static_cast<size_t>(place) * 7 + k], expected[k])
                << type << ", place " << place << ", operation " << k;
}

TEST(Atomics, UpdatesOfEveryOrderScopeAndSpace_AreCounted) {
    expect_updates<int64_t>("long", "atomic_long");
    expect_updates<uint32_t>("uint", "atomic_uint");
}

TEST(Atomics, ExchangesAndFlags_ReturnTheOldValue) {
    KernelRunner runner{R"(
kernel void run(global int* out, global float* f) {
    volatile global atomic_int* a = (volatile global atomic_int*)out;
    volatile global atomic_float* af = (volatile global atomic_float*)f;
    int expected = 3;
    atomic_init(a, 3);
    out[1] = atomic_compare_exchange_strong(a, &expected, 8);
    out[2] = atomic_compare_exchange_strong_explicit(a, &expected, 9, memory_order_acq_rel, memory_order_acquire, memory_scope_device);
    out[3] = expected;
    out[4] = atomic_exchange_explicit(a, 11, memory_order_release);
    atomic_store_explicit(a, 12, memory_order_release, memory_scope_device);
    out[5] = atomic_load_explicit(a, memory_order_acquire);
    volatile global atomic_flag* flag = (volatile global atomic_flag*)(out + 6);
    out[7] = atomic_flag_test_and_set(flag);
    out[8] = atomic_flag_test_and_set_explicit(flag, memory_order_acquire, memory_scope_work_group);
    atomic_flag_clear(flag);
    out[9] = atomic_flag_test_and_set(flag);
    atomic_store(af, 1.5f);
    f[1] = atomic_exchange(af, 2.5f);
    float seen = 0;
    out[10] = atomic_compare_exchange_weak(af, &seen, 7.0f);
    f[2] = seen;
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_device);
    out[11] = atomic_add(out + 12, 5) + atomic_inc(out + 12) + atomic_dec(out + 12) + atomic_cmpxchg(out + 12, 5, 77);
    out[13] = atomic_xchg(out + 12, 1) + atomic_max(out + 12, 50) + atomic_min(out + 12, 40) + atom_and(out + 12, 8) + atom_or(out + 12, 3) + atom_xor(out + 12, 1);
    f[3] = atomic_xchg(f + 4, 9.0f);
    mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); read_mem_fence(CLK_GLOBAL_MEM_FENCE); write_mem_fence(CLK_LOCAL_MEM_FENCE);
}
)"};
    Buffer<int32_t> out(14, 0);
    Buffer<float> f = {0, 0, 0, 0, 4};
    void* const pointers[] = {out.data(), f.data()};
    runner.run("run", pointers, 1);
    // 0 + 5 + 6 + 5 and 77 + 1 + 50 + 40 + 8 + 11
    EXPECT_EQ(out, (Buffer<int32_t>{12, 1, 0, 8, 8, 12, 1, 0, 1, 0, 0, 16, 10, 187}));
    EXPECT_EQ(f, (Buffer<float>{2.5f, 1.5f, 2.5f, 4, 9}));
}

TEST(Atomics, OfHalves_AddExchangeAndCompare) {
    KernelRunner runner{R"(
#define UPDATE(o)                                                                                 \
    atomic_fetch_add(o, 1.0h);                                                                    \
    atomic_fetch_add_explicit(o, 0.5h, memory_order_relaxed);                                     \
    atomic_fetch_sub_explicit(o, 0.25h, memory_order_acq_rel, memory_scope_device);               \
    atomic_fetch_min(o + 1, (half)i);                                                             \
    atomic_fetch_max_explicit(o + 2, (half)i, memory_order_relaxed, memory_scope_work_group);
kernel void run(volatile global atomic_half* shared, global half* out) {
    local atomic_half box[3];
    size_t i = get_global_id(0);
    if (get_local_id(0) == 0) {
        atomic_store(box, 0.0h);
        atomic_store_explicit(box + 1, 100.0h, memory_order_relaxed);
        atomic_store_explicit(box + 2, -1.0h, memory_order_relaxed, memory_scope_work_group);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UPDATE(shared)
    UPDATE(box)
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        out[0] = atomic_load(box);
        out[1] = atomic_load_explicit(box + 1, memory_order_relaxed);
        out[2] = atomic_exchange(box + 2, 5.0h);
        out[3] = atomic_exchange_explicit(box + 2, 6.0h, memory_order_relaxed);
        volatile atomic_half* generic_object = box + 2;
        out[4] = atomic_load(generic_object);
    }
}
)"};
    Buffer<Half> shared = {0, 100, -1}, out(5);
    void* const pointers[] = {shared.data(), out.data()};
    runner.run("run", pointers, Range{{60, 1, 1}, {60, 1, 1}});
    EXPECT_EQ(shared, (Buffer<Half>{75, 0, 59}));
    EXPECT_EQ(out, (Buffer<Half>{75, 0, 59, 5, 6}));
}

TEST(Atomics, GroupsOnSeveralThreads_LoseNoUpdate) {
    const std::string source = R"(
kernel void count(global uint* a, global ulong* b) {
    atomic_inc(a);
    atom_add(b, 3ul);
    atomic_fetch_add((volatile global atomic_uint*)(a + 1), 2u);
}
)";
    Buffer<uint32_t> a(2, 0);
    Buffer<uint64_t> b(1, 0);
    constexpr size_t items = 20000, threads = 4;
    KernelRunner first{source}, second{source}, third{source}, fourth{source};
    std::vector<std::thread> running;
    for (KernelRunner* runner : {&first, &second, &third, &fourth})
        running.emplace_back([&, runner] {
            void* const pointers[] = {a.data(), b.data()};
            runner->run("count", pointers, items);
        });
    for (std::thread& thread : running)
        thread.join();
    EXPECT_EQ(a[0], items * threads);
    EXPECT_EQ(a[1], 2 * items * threads);
    EXPECT_EQ(b[0], 3 * items * threads);
}

} // namespace
} // namespace polder
