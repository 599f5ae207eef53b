// Code for launches with little work: when it is made, and that its results are those of other code. POCL_DEBUG=compiler reports each code
// that is made in a line on stderr; the cache is off, and early code, too, but for one test.
#include "support/fixture.h"
#include "support/made_code.h"
#include "support/native_kernels.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t small = 64, large = size_t{1} << 20;

class QuickCode : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        if (!executes_native_kernels(devices[0]))
            GTEST_SKIP() << "only code for the host's processors is reported in a line";
        errors = std::make_unique<MadeCode>();
    }
    // What kernel(global int* a, ...) writes to zeroed memory, in `items` work-items.
    std::vector<cl_int> run(cl_kernel kernel, size_t items, const size_t* local = nullptr) {
        std::vector<cl_int> values(4 * items + 256);
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<cl_int>(i * 2654435761U);
        const OwnedMem buffer = make_buffer(values.size() * sizeof(cl_int));
        EXPECT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, values.size() * sizeof(cl_int), values.data(), 0,
                                       nullptr, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, local, 0, nullptr, nullptr), CL_SUCCESS);
        return read<cl_int>(buffer, values.size());
    }
    [[nodiscard]] size_t quick(const std::string& name) const { return errors->made(name + ": quick code"); }
    [[nodiscard]] size_t made(const std::string& name) const { return errors->made(name + ":"); }
    std::unique_ptr<MadeCode> errors;
};

TEST_F(QuickCode, IsTheOnlyCodeOfAFewSmallLaunches) {
    const OwnedProgram program = build("kernel void few(global int* a) { a[get_global_id(0)] = 5; }");
    const OwnedKernel kernel = make_kernel(program, "few");
    const size_t local = 4;
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(run(kernel, small, i % 2 ? &local : nullptr)[7], 5);
    EXPECT_EQ(quick("few"), 1U);
    EXPECT_EQ(made("few"), 1U);
}

TEST_F(QuickCode, IsNotMadeForALargeLaunch_AndNotUsedAfterIt) {
    const OwnedProgram program = build("kernel void much(global int* a) { a[get_global_id(0)] = 5; }");
    const OwnedKernel kernel = make_kernel(program, "much");
    run(kernel, large);
    run(kernel, small);
    EXPECT_EQ(quick("much"), 0U);
    EXPECT_EQ(made("much"), 1U);
}

TEST_F(QuickCode, IsReplacedWhenTheLaunchesHaveMuchWorkInSum) {
    const OwnedProgram program = build("kernel void often(global int* a) { a[get_global_id(0)] = 5; }");
    const OwnedKernel kernel = make_kernel(program, "often");
    for (int i = 0; i < 40; ++i)
        run(kernel, large / 64);
    EXPECT_EQ(quick("often"), 1U);
    EXPECT_EQ(made("often"), 2U);
}

TEST_F(QuickCode, IsReplacedAfterManyLaunches) {
    const OwnedProgram program = build("kernel void many(global int* a) { a[get_global_id(0)] = 5; }");
    const OwnedKernel kernel = make_kernel(program, "many");
    for (int i = 0; i < 200; ++i)
        run(kernel, small, &small);
    EXPECT_EQ(made("many"), 1U);
    for (int i = 0; i < 100; ++i)
        run(kernel, small, &small);
    EXPECT_EQ(quick("many"), 1U);
    EXPECT_EQ(made("many"), 2U);
}

// Eight launches are too few for the replacement by a launch. Runs with early code.
TEST_F(QuickCode, IsReplacedByAnotherThreadAfterAFewLaunches) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "with one processor, nothing is made ahead";
    const OwnedProgram program = build("kernel void repeated(global int* a) { a[get_global_id(0)] = 17; }");
    const OwnedKernel kernel = make_kernel(program, "repeated");
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(run(kernel, small, &small)[0], 17);
    for (int i = 0; i < 20000 && made("repeated") == quick("repeated"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(made("repeated"), quick("repeated") + 1);
    for (int i = 0; i < 300; ++i)
        run(kernel, small, &small);
    EXPECT_EQ(made("repeated"), quick("repeated") + 1);
}

TEST_F(QuickCode, CountsTheRoundsOfLoopsUpToAnArgument) {
    const OwnedProgram program = build("kernel void rounds(global int* a, int n) {"
                                       "  int sum = 0; for (int i = 0; i < n; ++i) sum += a[i & 31];"
                                       "  a[get_global_id(0) + 64] = sum; }");
    for (const cl_int rounds : {1, 1 << 20}) {
        const OwnedKernel kernel = make_kernel(program, "rounds");
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof rounds, &rounds), CL_SUCCESS);
        run(kernel, small);
        EXPECT_EQ(quick("rounds"), 1U);
        EXPECT_EQ(made("rounds"), rounds == 1 ? 1U : 2U);
    }
}

// The properties that an application may ask for, or see in its kernel, do not depend on the code.
TEST_F(QuickCode, HasTheGroupsOfOtherCode) {
    const OwnedProgram program =
        build("kernel void groups(global int* a) { a[get_global_id(0)] = (int)get_local_size(0); }");
    const OwnedKernel kernel = make_kernel(program, "groups");
    const cl_int before = run(kernel, small)[0];
    EXPECT_EQ(quick("groups"), 1U);
    size_t multiple = 0;
    ASSERT_EQ(clGetKernelWorkGroupInfo(kernel, devices[0], CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                       sizeof multiple, &multiple, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(made("groups"), 2U);
    EXPECT_EQ(run(kernel, small)[0], before);
}

// Each kernel has many types and operations; `other` is the same text, whose first launch is large.
TEST_F(QuickCode, HasTheResultsOfOtherCode) {
    const char* bodies[] = {
        "int4 v = vload4(id, a); v.x = v.x * v.y + (v.z >> (v.w & 31)); v.y = v.x / (v.y | 1) + v.z % (v.w | 1); "
        "vstore4(v, id, a);",
        "char16 v = as_char16(vload4(id, a)); v = v.s13570246fdb9ace8 + v * v; vstore4(as_int4(v), id, a);",
        "short8 v = as_short8(vload4(id, a)); v = shuffle2(v, v >> (short8)2, (ushort8)(9, 1, 3, 15, 4, 2, 0, 8)); "
        "vstore4(as_int4(v), id, a);",
        "ulong2 v = as_ulong2(vload4(id, a)); v = mul_hi(v, v.yx) + rotate(v, (ulong2)7); vstore4(as_int4(v), id, a);",
        "float4 v = convert_float4(vload4(id, a)); v = fma(v, v, v.yzwx) / (v + 3.0f); vstore4(as_int4(v), id, a);",
        "float4 v = convert_float4_rtz(vload4(id, a)) * 1.5e-6f; vstore4(convert_int4(convert_uchar4_sat_rte(v)), id, "
        "a);",
        "double2 v = convert_double2(vload4(id, a).xy); v = sqrt(v * v + 1.0) - floor(v / 7.0); vstore4(as_int4(v), "
        "id, "
        "a);",
        "local int c[64]; c[l] = a[id]; barrier(CLK_LOCAL_MEM_FENCE); a[id] = c[63 - l] + c[l ^ 1];",
        "local int c[64]; event_t e = async_work_group_copy(c, a + get_group_id(0) * 64, 64, 0); wait_group_events(1, "
        "&e);"
        "int sum = 0; for (int i = 0; i < 64; ++i) sum += c[i] * (i + l); a[id + n] = sum;",
        "int c[8]; for (int i = 0; i < 8; ++i) c[i] = a[id] * i; a[id] = c[a[id] & 7] + c[l & 7];",
        "a[id] = popcount(a[id]) + clz(a[id]) + abs_diff(a[id], l) + add_sat(a[id], a[id]) + mad24(l, 3, n);",
        "switch (a[id] & 3) { case 0: a[id] = l; break; case 1: a[id] *= 3; case 2: a[id] += 7; break; default: a[id] "
        "= -1; }",
    };
    std::string source;
    for (size_t i = 0; i < std::size(bodies); ++i)
        for (const char* name : {"mine", "other"})
            source += "kernel void " + (name + std::to_string(i)) +
                      "x(global int* a) { const int id = get_global_id(0), " +
                      "l = get_local_id(0), n = get_global_size(0); " + bodies[i] + " }\n";
    const OwnedProgram program = build(source);
    const size_t local = 64, few = 2 * local;
    for (size_t i = 0; i < std::size(bodies); ++i) {
        const std::string mine = "mine" + std::to_string(i) + "x", other = "other" + std::to_string(i) + "x";
        const OwnedKernel quick_kernel = make_kernel(program, mine.c_str()),
                          kernel = make_kernel(program, other.c_str());
        run(kernel, large, &local);
        EXPECT_EQ(run(quick_kernel, few, &local), run(kernel, few, &local)) << bodies[i];
        EXPECT_EQ(quick(mine), 1U) << bodies[i];
        EXPECT_EQ(quick(other), 0U) << bodies[i];
    }
}

}  // namespace
}  // namespace polder::test
