// Threads that do different things in one context at once: launches of shared kernels with several sizes, builds of the same sources again, large
// buffers of which parts are used, figures and trims, callbacks behind user events. The number of steps is bounded; nothing is timed.
#include "../api/support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <atomic>
#include <functional>
#include <random>
#include <thread>

namespace polder::test {
namespace {

constexpr size_t MiB = size_t{1} << 20;

class Mixed : public ContextTest {
protected:
    // Runs the functions at once, each with its own queue; those of `beside` again and again until the others have returned.
    using Work = std::function<void(cl_command_queue)>;
    void run(const std::vector<Work>& works, const std::vector<Work>& beside) {
        std::atomic<size_t> working{works.size()};
        std::vector<std::thread> threads;
        std::vector<OwnedQueue> queues;
        for (size_t i = 0; i < works.size() + beside.size(); ++i)
            queues.push_back(make_queue(devices[i % devices.size()]));
        for (size_t i = 0; i < works.size(); ++i)
            threads.emplace_back([&, i] {
                works[i](queues[i]);
                --working;
            });
        for (size_t i = 0; i < beside.size(); ++i)
            threads.emplace_back([&, i] {
                do
                    beside[i](queues[works.size() + i]);
                while (working != 0);
            });
        for (std::thread& thread : threads)
            thread.join();
    }
    template <class Function>
    Function find(const char* name) {
        const auto found = reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform(), name));
        EXPECT_NE(found, nullptr) << name;
        return found;
    }
    void launch(cl_command_queue on, cl_kernel kernel, size_t items, size_t group) {
        ASSERT_EQ(
            clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, group == 0 ? nullptr : &group, 0, nullptr, nullptr),
            CL_SUCCESS);
    }
};

TEST_F(Mixed, LaunchesBuildsBuffersFiguresAndCallbacks) {
    constexpr size_t items = 512;
    const OwnedProgram program = build("kernel void count(global uint* p) { atomic_inc(p + get_global_id(0)); }");
    // The kernel is shared: no thread changes its argument.
    const OwnedMem counts = make_buffer(items * sizeof(cl_uint));
    write(counts, std::vector<cl_uint>(items, 0));
    const OwnedKernel count = make_kernel(program, "count");
    ASSERT_EQ(clSetKernelArg(count, 0, sizeof(cl_mem), counts.in()), CL_SUCCESS);
    std::atomic<uint32_t> launches_of_first{0}, called{0}, expected{0};
    const Work launches = [&](cl_command_queue on) {
        for (uint32_t i = 0; i < 300; ++i) {
            const size_t sizes[][2] = {{items, 64}, {items / 2, 0}, {items, 32}, {1, 1}};
            launch(on, count, sizes[i % 4][0], sizes[i % 4][1]);
            ++launches_of_first;
            // Devices with memories of their own do not share atomic operations: one command at a time.
            ASSERT_EQ(clFinish(on), CL_SUCCESS);
        }
    };
    const Work builds = [&](cl_command_queue on) {
        for (int i = 0; i < 12; ++i) {
            const OwnedProgram again =
                build("kernel void k(global int* p) { p[get_global_id(0)] = " + std::to_string(i % 3) + "; }",
                      i % 5 == 4 ? "-g" : "");
            const OwnedKernel kernel = make_kernel(again, "k");
            const OwnedMem out = make_buffer(sizeof(cl_int) * 4);
            ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
            launch(on, kernel, 4, 0);
            EXPECT_EQ(read<cl_int>(out, 4, on), std::vector<cl_int>(4, i % 3));
        }
    };
    const Work parts = [&](cl_command_queue on) {
        std::mt19937 random{static_cast<uint32_t>(std::hash<std::thread::id>{}(std::this_thread::get_id()))};
        for (cl_int i = 0; i < 200; ++i) {
            const OwnedMem large = make_buffer((8 + random() % 2) * MiB);
            const size_t at = random() % 1000 * 4096;
            ASSERT_EQ(clEnqueueFillBuffer(on, large, &i, 4, at, 4096, 0, nullptr, nullptr), CL_SUCCESS);
            cl_int error = CL_SUCCESS;
            const auto* mapped = static_cast<const cl_int*>(
                clEnqueueMapBuffer(on, large, CL_TRUE, CL_MAP_READ, at + 64, 64, 0, nullptr, nullptr, &error));
            ASSERT_EQ(error, CL_SUCCESS);
            EXPECT_EQ(*mapped, i);
            ASSERT_EQ(clEnqueueUnmapMemObject(on, large, const_cast<cl_int*>(mapped), 0, nullptr, nullptr), CL_SUCCESS);
        }
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
    };
    const Work callbacks = [&](cl_command_queue on) {
        const OwnedMem buffer = make_buffer(4096);
        for (cl_int i = 0; i < 100; ++i) {
            const OwnedEvent gate = make_user_event();
            OwnedEvent filled;
            ASSERT_EQ(clEnqueueFillBuffer(on, buffer, &i, 4, 0, 4096, 1, gate.in(), filled.out()), CL_SUCCESS);
            ++expected;
            ASSERT_EQ(clSetEventCallback(
                          filled, CL_COMPLETE,
                          [](cl_event, cl_int, void* data) { ++*static_cast<std::atomic<uint32_t>*>(data); }, &called),
                      CL_SUCCESS);
            ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
            ASSERT_EQ(clWaitForEvents(1, filled.in()), CL_SUCCESS);
        }
    };
    const auto statistics = find<clGetMemoryStatisticsPOLDER_fn>("clGetMemoryStatisticsPOLDER");
    const auto budgets = find<clGetMemoryBudgetsPOLDER_fn>("clGetMemoryBudgetsPOLDER");
    const auto trim = find<clTrimMemoryPOLDER_fn>("clTrimMemoryPOLDER");
    const Work figures = [&](cl_command_queue) {
        cl_uint spaces = 0;
        ASSERT_EQ(statistics(context, 0, nullptr, &spaces), CL_SUCCESS);
        std::vector<cl_memory_statistics_polder> entries(spaces);
        std::vector<cl_memory_budget_polder> all(spaces);
        EXPECT_EQ(statistics(context, spaces, entries.data(), nullptr), CL_SUCCESS);
        EXPECT_EQ(budgets(context, spaces, all.data(), nullptr), CL_SUCCESS);
        for (const cl_memory_budget_polder& budget : all)
            EXPECT_LE(budget.committed_bytes, budget.limit_bytes);
        EXPECT_EQ(trim(context, CL_MEMORY_SPACE_ALL_POLDER), CL_SUCCESS);
        std::this_thread::yield();
    };
    const size_t launching = devices.size() == 1 ? 2 : 1;
    std::vector<Work> works{builds, builds, parts, parts, callbacks};
    works.insert(works.end(), launching, launches);
    run(works, {figures});
    EXPECT_EQ(read<cl_uint>(counts, 1)[0], launches_of_first);
    while (called != expected)
        std::this_thread::yield();
}

}  // namespace
}  // namespace polder::test
