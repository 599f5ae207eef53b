// Other forms of a kernel's code (decision 325): they are made and measured when the kernel has worked for long, and compute the same. POCL_DEBUG=compiler
// reports each form that was measured in a line on stderr. No test depends on which form is faster.
#include "support/fixture.h"
#include "support/made_code.h"
#include "support/native_kernels.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace polder::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* measured = "pairs of measurements";
constexpr size_t items = size_t{1} << 16;

class OtherForms : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        if (!executes_native_kernels(devices[0]))
            GTEST_SKIP() << "only code for the host's processors has other forms";
        errors = std::make_unique<MadeCode>();
    }

    std::vector<cl_uint> run(cl_command_queue on, cl_kernel kernel, size_t global, size_t local) {
        const OwnedMem buffer = make_buffer(global * sizeof(cl_uint));
        const cl_uint rounds = 100;
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof rounds, &rounds), CL_SUCCESS);
        for (int i = 0; i < 8; ++i)
            EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        std::vector<cl_uint> values(global);
        EXPECT_EQ(
            clEnqueueReadBuffer(on, buffer, CL_TRUE, 0, global * sizeof(cl_uint), values.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
        return values;
    }

    // Launches the kernel until two of its forms were measured. All launches have the results of the first one.
    void expect_same_results(const char* source, const std::string& name, size_t global, size_t local) {
        const OwnedProgram program = build(source);
        const OwnedKernel kernel = make_kernel(program, name.c_str());
        const std::vector<cl_uint> first = run(queue, kernel, global, local);
        const auto end = Clock::now() + std::chrono::seconds(100);
        while (errors->lines(name + ":", measured) < 2 && Clock::now() < end)
            ASSERT_EQ(run(queue, kernel, global, local), first);
        EXPECT_GE(errors->lines(name + ":", measured), 2U);
    }

    std::unique_ptr<MadeCode> errors;
};

// Each work-item's chain of floating-point numbers is the same with any number of lanes and vectors.
constexpr const char* chains = R"(
kernel void chains(global uint* out, uint n) {
    float x = 0.5f + 0.25f * (get_global_id(0) % 1000) / 1000;
    for (uint i = 0; i < n; ++i)
        x = 3.7f * x * (1 - x);
    out[get_global_id(0)] = as_uint(x);
})";

TEST_F(OtherForms, ComputeTheSame) { expect_same_results(chains, "chains", items, 64); }

// Their private arrays and the values that live across barriers are laid out for other numbers of lanes.
TEST_F(OtherForms, HaveScratchMemoryOfTheirOwn) {
    expect_same_results(R"(
kernel void crossing(global uint* out, uint n) {
    local uint shared[96];
    uint own[12];
    const uint id = get_local_id(0);
    for (uint i = 0; i < 12; ++i)
        own[i] = id * i + get_global_id(0);
    uint sum = id;
    for (uint round = 0; round < n / 10; ++round) {
        shared[id] = sum + own[sum % 12];
        barrier(CLK_LOCAL_MEM_FENCE);
        sum = sum * 5 + shared[(id + round + 1) % 96];
        own[(round + id) % 12] ^= sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = sum ^ own[id % 12];
})",
                        "crossing", 96 * 256, 96);
}

// Launches with few work-groups are executed in one form or the other.
TEST_F(OtherForms, ComputeTheSameInLaunchesOfOneWorkGroup) {
    expect_same_results(R"(
kernel void single(global uint* out, uint n) {
    uint x = get_global_id(0) + 1;
    for (uint i = 0; i < 50 * n; ++i)
        x = x * 1664525u + (x >> 13) + i;
    out[get_global_id(0)] = x;
})",
                        "single", 256, 256);
}

TEST_F(OtherForms, AreMeasuredByLaunchesOfSeveralQueues) {
    const OwnedProgram program = build(chains);
    std::vector<cl_uint> first;
    {
        const OwnedKernel kernel = make_kernel(program, "chains");
        first = run(queue, kernel, items, 64);
    }
    const auto end = Clock::now() + std::chrono::seconds(100);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            const OwnedQueue own = make_queue(devices[0]);
            const OwnedKernel kernel = make_kernel(program, "chains");
            while (errors->lines("chains:", measured) < 2 && Clock::now() < end)
                EXPECT_EQ(run(own, kernel, items, 64), first);
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_GE(errors->lines("chains:", measured), 2U);
}

TEST_F(OtherForms, AreNotMadeWhenTheUserWantsNone) {
    const OwnedProgram program = build(chains);
    const OwnedKernel kernel = make_kernel(program, "chains");
    const auto end = Clock::now() + std::chrono::milliseconds(300);
    while (Clock::now() < end)
        run(queue, kernel, items, 64);
    EXPECT_EQ(errors->lines("chains:", measured), 0U);
    EXPECT_LE(errors->made("chains"), 1U);
}

}  // namespace
}  // namespace polder::test
